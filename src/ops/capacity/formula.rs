//! The storage formula and what follows from it.
//!
//! `bytes a day x compression ratio x retention days x replication factor x headroom`, spread over the brokers. From the
//! same inputs: partitions, open files, disks, growth, and topic settings. Each result grows with each input that costs
//! something, which the tests hold it to.

use super::SECONDS_PER_DAY;
use super::inputs::{DiskClass, Inputs};
use super::settings::{TopicSettings, fitting_segment_bytes, fitting_settings, floor_u64};

/// Bytes of an entry in `.index` and in `.timeindex` together.
const INDEX_ENTRY_BYTES: f64 = 20.0;
/// Linux allows a process so many maps unless told otherwise (`vm.max_map_count`); Kafka maps two indexes a segment.
pub const DEFAULT_MAX_MAP_COUNT: u64 = 65_530;

/// A plan, complete.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What it was computed from.
    pub inputs: Inputs,
    /// Bytes on disk.
    pub storage: StoragePlan,
    /// Number of partitions.
    pub partitions: PartitionPlan,
    /// Descriptors and maps of a broker.
    pub open_files: OpenFilesPlan,
    /// What the formula does not see and the headroom has to cover.
    pub overheads: Overheads,
    /// One for each class of disk; the chosen one first.
    pub disks: Vec<DiskPlan>,
    /// Year by year, from the first one on.
    pub growth: Vec<GrowthYear>,
    /// Settings that fit.
    pub settings: TopicSettings,
    /// What to think about.
    pub advice: Vec<Advice>,
}

/// Bytes on disk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StoragePlan {
    /// Bytes that producers send a day, before compression.
    pub raw_bytes_per_day: f64,
    /// The same as stored, one copy.
    pub stored_bytes_per_day: f64,
    /// One copy of everything that is retained.
    pub retained_bytes: f64,
    /// `retention.bytes` is reached before `retention.ms`.
    pub limited_by_size: bool,
    /// All copies with headroom.
    pub cluster_bytes: f64,
    /// The same for one of the brokers.
    pub per_broker_bytes: f64,
    /// All copies without headroom, for one of the brokers.
    pub per_broker_flat_bytes: f64,
    /// One copy of one partition, without headroom.
    pub per_partition_bytes: f64,
}

/// What decides on the number of partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartitionReason {
    /// The throughput needs so many.
    Throughput,
    /// The consumers of a group need one each.
    Consumers,
}

/// Number of partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionPlan {
    /// The larger of the two needs.
    pub recommended: u64,
    /// Which need that is.
    pub because: PartitionReason,
    /// Partitions that the throughput needs.
    pub for_throughput: u64,
    /// Partitions that the consumers need.
    pub for_consumers: u64,
    /// The number that the rest of the plan uses: the decided or the recommended one.
    pub planned: u64,
    /// Ten a broker.
    pub upper_advice: u64,
}

/// Descriptors and maps of one broker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OpenFilesPlan {
    /// Days until a segment rolls, by size or by time.
    pub segment_days: f64,
    /// Copies of partitions on a broker.
    pub partition_replicas: u64,
    /// Segments of a partition, the active one included.
    pub segments_per_partition: u64,
    /// Replicas x segments x 3 + buffer.
    pub per_broker: u64,
    /// Replicas x segments x 2: Kafka maps both indexes.
    pub memory_maps_per_broker: u64,
}

/// What lies on a broker's disk beyond the flat formula, in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Overheads {
    /// Retention removes whole segments: up to one more for each replica.
    pub whole_segments_bytes: f64,
    /// Written while expired segments wait for the retention check.
    pub check_interval_bytes: f64,
    /// Written while removed segments wait for their deletion.
    pub delete_delay_bytes: f64,
    /// Offset and time index entries.
    pub index_bytes: f64,
    /// Apparent size of the active segments' preallocated indexes. They are sparse: no space is taken before it is used.
    pub index_preallocation_bytes: f64,
    /// The headroom at which the formula covers these.
    pub needed_headroom: f64,
}

/// Disks of one broker, if they are of one class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DiskPlan {
    /// The class.
    pub class: DiskClass,
    /// It was asked for.
    pub chosen: bool,
    /// Written by producers and replication at the peak, bytes a second.
    pub write_bytes_per_second: f64,
    /// Read from disk by readers that are behind, bytes a second.
    pub read_bytes_per_second: f64,
    /// Disks for that throughput.
    pub for_throughput: u64,
    /// Disks for the broker's bytes, where a disk's size is known.
    pub for_capacity: Option<u64>,
    /// The larger of the two.
    pub per_broker: u64,
    /// The broker's bytes on each of them.
    pub bytes_per_disk: f64,
    /// Seconds to fill a lost broker's disks again at their full throughput; the network may be slower.
    pub rebuild_seconds: f64,
}

/// The plan after so many years of growth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GrowthYear {
    /// Years from now.
    pub year: u32,
    /// All copies with headroom.
    pub cluster_bytes: f64,
    /// For one of today's brokers.
    pub per_broker_bytes: f64,
    /// Brokers at which none holds more than today.
    pub brokers_at_todays_size: u64,
}

/// What to think about before the plan is used; the numbers concerned are in the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// More copies than brokers cannot be placed.
    ReplicationAboveBrokers,
    /// A single copy: a lost disk is lost data.
    SingleCopy,
    /// No broker is left over to take the replicas of a lost one.
    NoBrokerTakesOver,
    /// More partitions than ten a broker.
    PartitionsAboveAdvice,
    /// Fewer partitions than throughput or consumers need.
    PartitionsBelowNeed,
    /// Fewer partitions than brokers: some lead none.
    PartitionsBelowBrokers,
    /// The target throughput is below the mean of what is sent.
    TargetBelowMean,
    /// Overheads are larger than the headroom.
    HeadroomBelowOverheads,
    /// More maps than Linux allows by default.
    MemoryMapsAboveDefault,
    /// A partition is so slow that one segment spans more than half of its retention.
    SegmentSpansRetention,
}

/// Computes the plan.
pub fn plan(inputs: Inputs) -> Plan {
    let inputs = inputs.derive();
    let partitions = plan_partitions(&inputs);
    let storage = plan_storage(&inputs, partitions.planned);
    let segment_bytes = fitting_segment_bytes(&inputs, storage.per_partition_bytes);
    let settings = fitting_settings(&inputs, storage.per_partition_bytes, segment_bytes);
    let open_files = plan_open_files(&inputs, &storage, &settings, partitions.planned);
    let overheads = sum_overheads(&inputs, &storage, &settings, open_files.partition_replicas);
    let mut plan = Plan {
        disks: plan_disks(&inputs, &storage),
        growth: plan_growth(&inputs, &storage),
        inputs,
        storage,
        partitions,
        open_files,
        overheads,
        settings,
        advice: Vec::new(),
    };
    plan.advice = collect_advice(&plan);
    plan
}

fn plan_storage(inputs: &Inputs, partitions: u64) -> StoragePlan {
    let raw_bytes_per_day = inputs.bytes_per_day.value;
    let stored_bytes_per_day = raw_bytes_per_day * inputs.compression_ratio.value;
    let by_time = stored_bytes_per_day * inputs.retention_days.value;
    let by_size = inputs.retention_bytes.map(|limit| limit.value * partitions as f64);
    let retained_bytes = by_size.map_or(by_time, |limit| limit.min(by_time));
    let all_copies = retained_bytes * f64::from(inputs.replication_factor.value);
    let cluster_bytes = all_copies * inputs.headroom.value;
    let brokers = f64::from(inputs.brokers.value.max(1));
    StoragePlan {
        raw_bytes_per_day,
        stored_bytes_per_day,
        retained_bytes,
        limited_by_size: by_size.is_some_and(|limit| limit < by_time),
        cluster_bytes,
        per_broker_bytes: cluster_bytes / brokers,
        per_broker_flat_bytes: all_copies / brokers,
        per_partition_bytes: retained_bytes / partitions.max(1) as f64,
    }
}

fn plan_partitions(inputs: &Inputs) -> PartitionPlan {
    let for_throughput = ceil_count(inputs.target_throughput.value / inputs.partition_throughput.value).max(1);
    let for_consumers = u64::from(inputs.consumers.value).max(1);
    let recommended = for_throughput.max(for_consumers);
    PartitionPlan {
        recommended,
        because: if for_throughput >= for_consumers { PartitionReason::Throughput } else { PartitionReason::Consumers },
        for_throughput,
        for_consumers,
        planned: inputs.partitions.map_or(recommended, |decided| u64::from(decided.value).max(1)),
        upper_advice: u64::from(inputs.brokers.value).saturating_mul(10),
    }
}

fn plan_open_files(inputs: &Inputs, storage: &StoragePlan, settings: &TopicSettings, partitions: u64) -> OpenFilesPlan {
    let replicas = partitions.saturating_mul(u64::from(inputs.replication_factor.value));
    let partition_replicas = replicas.div_ceil(u64::from(inputs.brokers.value.max(1)));
    let by_size = ceil_count(storage.per_partition_bytes / settings.segment_bytes as f64);
    let retention_ms = inputs.retention_days.value * SECONDS_PER_DAY * 1000.0;
    let by_time = ceil_count(retention_ms / settings.segment_ms.max(1) as f64);
    let segments_per_partition = by_size.max(by_time).saturating_add(1);
    let segments = partition_replicas.saturating_mul(segments_per_partition);
    OpenFilesPlan {
        segment_days: segment_days(storage, settings, partitions),
        partition_replicas,
        segments_per_partition,
        per_broker: segments.saturating_mul(3).saturating_add(inputs.fd_buffer.value),
        memory_maps_per_broker: segments.saturating_mul(2),
    }
}

fn sum_overheads(inputs: &Inputs, storage: &StoragePlan, settings: &TopicSettings, replicas: u64) -> Overheads {
    let flat = storage.per_broker_flat_bytes;
    let copies = f64::from(inputs.replication_factor.value) / f64::from(inputs.brokers.value.max(1));
    let written_per_ms = storage.stored_bytes_per_day * copies / (SECONDS_PER_DAY * 1000.0);
    // A slow partition rolls by time before a segment is full.
    let written_per_segment = written_per_ms * settings.segment_ms as f64;
    let whole_segments_bytes = (replicas as f64 * settings.segment_bytes as f64).min(written_per_segment);
    let interval = (settings.index_interval_bytes as f64).max(inputs.batch_size_bytes.value).max(1.0);
    let check_interval_bytes = written_per_ms * settings.retention_check_interval_ms as f64;
    let delete_delay_bytes = written_per_ms * settings.file_delete_delay_ms as f64;
    let index_bytes = (flat + whole_segments_bytes) / interval * INDEX_ENTRY_BYTES;
    let all = whole_segments_bytes + check_interval_bytes + delete_delay_bytes + index_bytes;
    Overheads {
        whole_segments_bytes,
        check_interval_bytes,
        delete_delay_bytes,
        index_bytes,
        index_preallocation_bytes: replicas as f64 * settings.segment_index_bytes as f64 * 2.0,
        needed_headroom: if flat > 0.0 { 1.0 + all / flat } else { 1.0 },
    }
}

fn plan_disks(inputs: &Inputs, storage: &StoragePlan) -> Vec<DiskPlan> {
    let chosen = inputs.disk.map(|disk| disk.value);
    let classes = [DiskClass::Hdd, DiskClass::SataSsd, DiskClass::Nvme];
    let listed = chosen.into_iter().chain(classes.into_iter().filter(|class| Some(*class) != chosen));
    listed.map(|class| plan_disk(inputs, storage, class, Some(class) == chosen)).collect()
}

fn plan_disk(inputs: &Inputs, storage: &StoragePlan, class: DiskClass, chosen: bool) -> DiskPlan {
    let brokers = f64::from(inputs.brokers.value.max(1));
    let peak = storage.stored_bytes_per_day / SECONDS_PER_DAY * inputs.peak_factor.value;
    let write_bytes_per_second = peak * f64::from(inputs.replication_factor.value) / brokers;
    let read_bytes_per_second = peak * inputs.catch_up_readers.value / brokers;
    let needed = write_bytes_per_second + read_bytes_per_second;
    let for_throughput = ceil_count(needed / class.bytes_per_second()).max(1);
    let for_capacity = inputs.disk_size_bytes.map(|size| ceil_count(storage.per_broker_bytes / size.value).max(1));
    let per_broker = for_capacity.unwrap_or(1).max(for_throughput);
    DiskPlan {
        class,
        chosen,
        write_bytes_per_second,
        read_bytes_per_second,
        for_throughput,
        for_capacity,
        per_broker,
        bytes_per_disk: storage.per_broker_bytes / per_broker as f64,
        rebuild_seconds: storage.per_broker_flat_bytes / (class.bytes_per_second() * per_broker as f64),
    }
}

fn plan_growth(inputs: &Inputs, storage: &StoragePlan) -> Vec<GrowthYear> {
    let factor = 1.0 + inputs.growth_per_year.value;
    (0..=inputs.years.value.min(50))
        .map(|year| {
            let growth = factor.powi(i32::try_from(year).unwrap_or(i32::MAX));
            GrowthYear {
                year,
                cluster_bytes: storage.cluster_bytes * growth,
                per_broker_bytes: storage.per_broker_bytes * growth,
                brokers_at_todays_size: ceil_count(f64::from(inputs.brokers.value) * growth),
            }
        })
        .collect()
}

fn collect_advice(plan: &Plan) -> Vec<Advice> {
    let Plan { inputs, partitions, .. } = plan;
    let (copies, brokers, planned) = (inputs.replication_factor.value, inputs.brokers.value, partitions.planned);
    let mean = plan.storage.raw_bytes_per_day / SECONDS_PER_DAY;
    let checks = [
        (copies > brokers, Advice::ReplicationAboveBrokers),
        (copies <= 1, Advice::SingleCopy),
        (copies > 1 && brokers <= copies, Advice::NoBrokerTakesOver),
        (planned > partitions.upper_advice, Advice::PartitionsAboveAdvice),
        (planned < partitions.recommended, Advice::PartitionsBelowNeed),
        (planned < u64::from(brokers), Advice::PartitionsBelowBrokers),
        (inputs.target_throughput.value < mean, Advice::TargetBelowMean),
        (plan.overheads.needed_headroom > inputs.headroom.value, Advice::HeadroomBelowOverheads),
        (plan.open_files.memory_maps_per_broker > DEFAULT_MAX_MAP_COUNT, Advice::MemoryMapsAboveDefault),
        (plan.open_files.segment_days > inputs.retention_days.value / 2.0, Advice::SegmentSpansRetention),
    ];
    checks.into_iter().filter(|(applies, _)| *applies).map(|(_, advice)| advice).collect()
}

/// Days until a segment rolls, by size or by time.
fn segment_days(storage: &StoragePlan, settings: &TopicSettings, partitions: u64) -> f64 {
    let by_time = settings.segment_ms as f64 / (SECONDS_PER_DAY * 1000.0);
    let partition_bytes_per_day = storage.stored_bytes_per_day / partitions.max(1) as f64;
    if partition_bytes_per_day > 0.0 {
        by_time.min(settings.segment_bytes as f64 / partition_bytes_per_day)
    } else {
        by_time
    }
}

/// The next whole number; a quotient that is one but for rounding stays it.
fn ceil_count(value: f64) -> u64 {
    floor_u64((value - value.abs() * 1e-12).ceil().max(0.0))
}

#[expect(clippy::float_cmp, reason = "the expected values are exact")]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::inputs::Input;
    use super::*;

    fn example() -> Inputs {
        Inputs {
            messages_per_day: Input::given(100e6),
            message_size_bytes: Input::given(1000.0),
            compression_ratio: Input::given(0.5),
            ..Inputs::default()
        }
    }

    #[test]
    fn a_hundred_million_kilobytes_a_day_are_1260_gigabytes() {
        let storage = plan(example()).storage;
        assert_eq!(storage.raw_bytes_per_day, 1e11);
        assert!((storage.cluster_bytes - 1.26e12).abs() < 1.0);
        assert!((storage.per_broker_bytes - 4.2e11).abs() < 1.0);
        let binary = Inputs { message_size_bytes: Input::given(1024.0), ..example() };
        assert!((plan(binary).storage.cluster_bytes - 1_290_240_000_000.0).abs() < 1.0);
    }

    #[test]
    fn bytes_a_day_win_over_messages_and_give_their_number() {
        let inputs = Inputs { bytes_per_day: Input::given(2e9), ..Inputs::default() };
        let plan = plan(inputs);
        assert_eq!(plan.inputs.messages_per_day, Input::derived(2e6));
        assert_eq!(plan.storage.raw_bytes_per_day, 2e9);
    }

    #[test]
    fn partitions_are_the_larger_need() {
        let inputs = Inputs {
            target_throughput: Input::given(95e6),
            partition_throughput: Input::given(10e6),
            consumers: Input::given(8),
            ..example()
        };
        let by_throughput = plan(inputs.clone()).partitions;
        assert_eq!((by_throughput.recommended, by_throughput.because), (10, PartitionReason::Throughput));
        assert_eq!(by_throughput.upper_advice, 30);
        let many = plan(Inputs { consumers: Input::given(12), ..inputs }).partitions;
        assert_eq!((many.recommended, many.because), (12, PartitionReason::Consumers));
    }

    #[test]
    fn descriptors_are_replicas_times_segments_times_three_plus_buffer() {
        let inputs = Inputs {
            partitions: Some(Input::given(12)),
            segment_bytes: Some(Input::given(1 << 30)),
            segment_ms: Input::given(604_800_000),
            ..example()
        };
        let files = plan(inputs).open_files;
        // 3.5e11 B / 12 partitions = 29.2 GB = 27.2 segments of 1 GiB, so 28 and the active one.
        assert_eq!((files.partition_replicas, files.segments_per_partition), (12, 29));
        assert_eq!(files.per_broker, 12 * 29 * 3 + 1000);
        assert_eq!(files.memory_maps_per_broker, 12 * 29 * 2);
    }

    #[test]
    fn disks_carry_replication_and_catch_up_reads() {
        let inputs = Inputs {
            bytes_per_day: Input::given(86_400.0 * 300e6),
            peak_factor: Input::given(2.0),
            disk: Some(Input::given(DiskClass::SataSsd)),
            disk_size_bytes: Some(Input::given(4e13)),
            ..Inputs::default()
        };
        let plan = plan(inputs);
        let first = plan.disks.first().copied().unwrap();
        assert!(first.chosen && first.class == DiskClass::SataSsd);
        assert_eq!((first.write_bytes_per_second, first.read_bytes_per_second), (600e6, 200e6));
        assert_eq!(first.for_throughput, 2);
        // 300 MB/s x 7 d x 3 x 1.2 / 3 brokers = 218 TB, on disks of 40 TB.
        assert_eq!((first.for_capacity, first.per_broker), (Some(6), 6));
        assert_eq!(plan.disks.len(), 3);
    }

    #[test]
    fn growth_compounds_and_says_how_many_brokers_it_needs() {
        let plan = plan(Inputs { growth_per_year: Input::given(0.5), ..example() });
        let third = plan.growth.get(2).copied().unwrap();
        assert!((third.cluster_bytes - 1.26e12 * 2.25).abs() < 10.0);
        assert_eq!(third.brokers_at_todays_size, 7);
    }

    #[test]
    fn a_size_limit_caps_what_time_would_keep() {
        let inputs =
            Inputs { partitions: Some(Input::given(10)), retention_bytes: Some(Input::given(1e9)), ..example() };
        let storage = plan(inputs).storage;
        assert!(storage.limited_by_size);
        assert!((storage.cluster_bytes - 1e10 * 3.0 * 1.2).abs() < 1.0);
    }

    #[test]
    fn advice_names_what_does_not_fit() {
        let inputs = Inputs {
            partitions: Some(Input::given(100)),
            replication_factor: Input::given(5),
            headroom: Input::given(1.0),
            ..example()
        };
        let advice = plan(inputs).advice;
        assert!(advice.contains(&Advice::PartitionsAboveAdvice));
        assert!(advice.contains(&Advice::ReplicationAboveBrokers));
        assert!(advice.contains(&Advice::HeadroomBelowOverheads));
    }

    #[test]
    fn no_traffic_gives_a_plan_of_zeros() {
        let plan = plan(Inputs::default());
        assert_eq!(plan.storage.cluster_bytes, 0.0);
        assert_eq!(plan.partitions.recommended, 1);
        assert_eq!(plan.overheads.needed_headroom, 1.0);
    }

    fn any_inputs() -> impl Strategy<Value = Inputs> {
        let traffic = (0.0..1e13, 1.0..1e6, 0.01..2.0, 0.01..400.0, 1..6_u32, 1.0..3.0);
        let shape = (1..100_u32, 1..50_u32, 1..500_u32, 1.0..5.0, 0.0..5.0, 0.0..2.0, 1_u64..1 << 31);
        (traffic, shape).prop_map(|(traffic, shape)| {
            let (bytes, message, ratio, days, replicas, headroom) = traffic;
            let (brokers, consumers, partitions, peak, readers, growth, segment) = shape;
            Inputs {
                bytes_per_day: Input::given(bytes),
                message_size_bytes: Input::given(message),
                compression_ratio: Input::given(ratio),
                retention_days: Input::given(days),
                replication_factor: Input::given(replicas),
                headroom: Input::given(headroom),
                brokers: Input::given(brokers),
                consumers: Input::given(consumers),
                partitions: Some(Input::given(partitions)),
                peak_factor: Input::given(peak),
                catch_up_readers: Input::given(readers),
                growth_per_year: Input::given(growth),
                segment_bytes: Some(Input::given(segment)),
                disk_size_bytes: Some(Input::given(1e12)),
                ..Inputs::default()
            }
        })
    }

    /// Everything that costs: more of it must never come from less of an input.
    fn costs(inputs: Inputs) -> Vec<f64> {
        let plan = plan(inputs);
        let mut costs = vec![
            plan.storage.cluster_bytes,
            plan.storage.per_broker_bytes,
            plan.partitions.recommended as f64,
            plan.open_files.per_broker as f64,
        ];
        costs.extend(plan.disks.iter().map(|disk| disk.per_broker as f64));
        costs.extend(plan.growth.iter().map(|year| year.cluster_bytes));
        costs
    }

    proptest! {
        #[test]
        fn every_cost_is_monotone_in_every_input(inputs in any_inputs(), factor in 1.0..4.0) {
            let more_f = |input: Input<f64>| Input::given(input.value * factor);
            let more_u = |input: Input<u32>| Input::given(input.value + 1);
            let less = costs(inputs.clone());
            let raised = [
                Inputs { bytes_per_day: more_f(inputs.bytes_per_day), ..inputs.clone() },
                Inputs { compression_ratio: more_f(inputs.compression_ratio), ..inputs.clone() },
                Inputs { retention_days: more_f(inputs.retention_days), ..inputs.clone() },
                Inputs { replication_factor: more_u(inputs.replication_factor), ..inputs.clone() },
                Inputs { headroom: more_f(inputs.headroom), ..inputs.clone() },
                Inputs { consumers: more_u(inputs.consumers), ..inputs.clone() },
                Inputs { peak_factor: more_f(inputs.peak_factor), ..inputs.clone() },
                Inputs { catch_up_readers: more_f(inputs.catch_up_readers), ..inputs.clone() },
                Inputs { growth_per_year: more_f(inputs.growth_per_year), ..inputs.clone() },
                Inputs { fd_buffer: Input::given(inputs.fd_buffer.value + 1), ..inputs.clone() },
            ];
            for (index, inputs) in raised.into_iter().enumerate() {
                for (more, less) in costs(inputs).iter().zip(&less) {
                    prop_assert!(more >= less, "input {index}: {more} < {less}");
                }
            }
        }

        #[test]
        fn more_brokers_never_give_one_of_them_more(inputs in any_inputs()) {
            let more = plan(Inputs { brokers: Input::given(inputs.brokers.value + 1), ..inputs.clone() });
            let less = plan(inputs);
            prop_assert!(more.storage.per_broker_bytes <= less.storage.per_broker_bytes);
            prop_assert!(more.open_files.per_broker <= less.open_files.per_broker);
            prop_assert_eq!(more.storage.cluster_bytes, less.storage.cluster_bytes);
        }
    }
}
