//! The plan as JSON. Field names are a contract: see segtool-json(5).

use std::collections::BTreeMap;

use serde::Serialize;

use super::human::sentence;
use super::inputs::{InputValue, input_rows, origin_name};
use super::measured::cluster_bytes;
use crate::ops::capacity::{
    Advice, Calibration, CapacityReport, CodecTrial, CodecTrials, Day, PartitionReason, Plan, Simulation,
};
use crate::render::json_text::to_document;

#[derive(Serialize)]
struct PlanDto {
    schema_version: u32,
    r#type: &'static str,
    inputs: BTreeMap<&'static str, InputDto>,
    storage: StorageDto,
    partitions: PartitionsDto,
    file_descriptors: FileDescriptorsDto,
    overheads: OverheadsDto,
    disks: Vec<DiskDto>,
    growth: Vec<GrowthDto>,
    settings: BTreeMap<&'static str, i64>,
    guard_retention_bytes: i64,
    advice: Vec<AdviceDto>,
    calibration: Option<CalibrationDto>,
    codecs: Option<CodecsDto>,
    simulation: Option<SimulationDto>,
}

#[derive(Serialize)]
struct InputDto {
    value: InputValue,
    origin: &'static str,
}

#[derive(Serialize)]
struct StorageDto {
    raw_bytes_per_day: f64,
    stored_bytes_per_day: f64,
    retained_bytes: f64,
    limited_by: &'static str,
    cluster_bytes: f64,
    per_broker_bytes: f64,
    per_broker_flat_bytes: f64,
    per_partition_bytes: f64,
}

#[derive(Serialize)]
struct PartitionsDto {
    recommended: u64,
    because: &'static str,
    for_throughput: u64,
    for_consumers: u64,
    planned: u64,
    upper_advice: u64,
}

#[derive(Serialize)]
struct FileDescriptorsDto {
    per_broker: u64,
    partition_replicas: u64,
    segments_per_partition: u64,
    memory_maps_per_broker: u64,
}

#[derive(Serialize)]
struct OverheadsDto {
    whole_segments_bytes: f64,
    check_interval_bytes: f64,
    delete_delay_bytes: f64,
    index_bytes: f64,
    index_preallocation_bytes: f64,
    needed_headroom: f64,
}

#[derive(Serialize)]
struct DiskDto {
    class: &'static str,
    chosen: bool,
    bytes_per_second: f64,
    write_bytes_per_second: f64,
    read_bytes_per_second: f64,
    for_throughput: u64,
    for_capacity: Option<u64>,
    per_broker: u64,
    bytes_per_disk: f64,
    rebuild_seconds: f64,
}

#[derive(Serialize)]
struct GrowthDto {
    year: u32,
    cluster_bytes: f64,
    per_broker_bytes: f64,
    brokers_at_todays_size: u64,
}

#[derive(Serialize)]
struct AdviceDto {
    id: &'static str,
    message: String,
}

#[derive(Serialize)]
struct SimulationDto {
    step_ms: i64,
    days: Vec<DayDto>,
    peak_bytes: f64,
    peak_day: f64,
    peak: FootprintDto,
    steady_bytes: Option<f64>,
    flat_bytes: f64,
    capacity_bytes: f64,
    full_on_day: Option<f64>,
    projected_full_day: Option<f64>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the JSON names carry the unit")]
struct FootprintDto {
    active_bytes: f64,
    closed_bytes: f64,
    deleted_bytes: f64,
    index_bytes: f64,
    cleaner_bytes: f64,
    taken_over_bytes: f64,
}

#[derive(Serialize)]
struct DayDto {
    day: u32,
    written_bytes: f64,
    least_bytes: f64,
    mean_bytes: f64,
    most_bytes: f64,
    free_bytes: f64,
    segments: u64,
}

#[derive(Serialize)]
struct CalibrationDto {
    partitions: u64,
    records: u64,
    stored_bytes: u64,
    payload_bytes: u64,
    span_days: Option<f64>,
    messages_per_day: Option<f64>,
    message_size_bytes: f64,
    compression_ratio: f64,
    batch_size_bytes: f64,
    retention_days: Option<f64>,
    profile: Option<[f64; 24]>,
    distinct_keys: u64,
}

#[derive(Serialize)]
struct CodecsDto {
    batches: u64,
    records: u64,
    skipped_batches: u64,
    stored_bytes: u64,
    uncompressed_bytes: u64,
    payload_bytes: u64,
    trials: Vec<TrialDto>,
}

#[derive(Serialize)]
struct TrialDto {
    codec: &'static str,
    level: Option<i32>,
    bytes: u64,
    compression_ratio: f64,
    compress_seconds_per_gb: f64,
    decompress_seconds_per_gb: f64,
    cluster_bytes: f64,
    failures: u64,
}

/// One JSON document with a line end.
pub fn render_json(report: &CapacityReport) -> Result<Vec<u8>, serde_json::Error> {
    let plan = &report.plan;
    let inputs = input_rows(&plan.inputs)
        .into_iter()
        .map(|row| (row.name, InputDto { value: row.value, origin: origin_name(row.origin) }))
        .collect();
    let document = PlanDto {
        schema_version: 1,
        r#type: "plan_capacity",
        inputs,
        storage: storage_dto(plan),
        partitions: partitions_dto(plan),
        file_descriptors: FileDescriptorsDto {
            per_broker: plan.open_files.per_broker,
            partition_replicas: plan.open_files.partition_replicas,
            segments_per_partition: plan.open_files.segments_per_partition,
            memory_maps_per_broker: plan.open_files.memory_maps_per_broker,
        },
        overheads: overheads_dto(plan),
        disks: disk_dtos(plan),
        growth: growth_dtos(plan),
        settings: settings_map(plan),
        guard_retention_bytes: plan.settings.guard_retention_bytes,
        advice: plan
            .advice
            .iter()
            .map(|advice| AdviceDto { id: advice_id(*advice), message: sentence(*advice, plan) })
            .collect(),
        calibration: report.calibration.as_ref().map(calibration_dto),
        codecs: report.codecs.as_ref().map(|codecs| codecs_dto(codecs, plan)),
        simulation: report.simulation.as_ref().map(simulation_dto),
    };
    to_document(&document)
}

fn calibration_dto(calibration: &Calibration) -> CalibrationDto {
    CalibrationDto {
        partitions: calibration.partitions,
        records: calibration.records,
        stored_bytes: calibration.stored_bytes,
        payload_bytes: calibration.payload_bytes,
        span_days: calibration.span_days,
        messages_per_day: calibration.messages_per_day(),
        message_size_bytes: calibration.message_size_bytes,
        compression_ratio: calibration.compression_ratio,
        batch_size_bytes: calibration.batch_size_bytes,
        retention_days: calibration.retention_days,
        profile: calibration.profile.map(|profile| *profile.weights()),
        distinct_keys: calibration.distinct_keys,
    }
}

fn codecs_dto(sample: &CodecTrials, plan: &Plan) -> CodecsDto {
    let trial = |trial: &CodecTrial| TrialDto {
        codec: trial.codec.name(),
        level: trial.level,
        bytes: trial.bytes,
        compression_ratio: trial.compression_ratio(sample),
        compress_seconds_per_gb: trial.compress_seconds_per_gb(sample),
        decompress_seconds_per_gb: trial.decompress_seconds_per_gb(sample),
        cluster_bytes: cluster_bytes(trial, sample, plan),
        failures: trial.failures,
    };
    CodecsDto {
        batches: sample.batches,
        records: sample.records,
        skipped_batches: sample.skipped_batches,
        stored_bytes: sample.stored_bytes,
        uncompressed_bytes: sample.uncompressed_bytes,
        payload_bytes: sample.payload_bytes,
        trials: sample.trials.iter().map(trial).collect(),
    }
}

fn storage_dto(plan: &Plan) -> StorageDto {
    let storage = &plan.storage;
    StorageDto {
        raw_bytes_per_day: storage.raw_bytes_per_day,
        stored_bytes_per_day: storage.stored_bytes_per_day,
        retained_bytes: storage.retained_bytes,
        limited_by: if storage.limited_by_size { "size" } else { "time" },
        cluster_bytes: storage.cluster_bytes,
        per_broker_bytes: storage.per_broker_bytes,
        per_broker_flat_bytes: storage.per_broker_flat_bytes,
        per_partition_bytes: storage.per_partition_bytes,
    }
}

fn partitions_dto(plan: &Plan) -> PartitionsDto {
    let partitions = &plan.partitions;
    PartitionsDto {
        recommended: partitions.recommended,
        because: match partitions.because {
            PartitionReason::Throughput => "throughput",
            PartitionReason::Consumers => "consumers",
        },
        for_throughput: partitions.for_throughput,
        for_consumers: partitions.for_consumers,
        planned: partitions.planned,
        upper_advice: partitions.upper_advice,
    }
}

fn overheads_dto(plan: &Plan) -> OverheadsDto {
    let overheads = &plan.overheads;
    OverheadsDto {
        whole_segments_bytes: overheads.whole_segments_bytes,
        check_interval_bytes: overheads.check_interval_bytes,
        delete_delay_bytes: overheads.delete_delay_bytes,
        index_bytes: overheads.index_bytes,
        index_preallocation_bytes: overheads.index_preallocation_bytes,
        needed_headroom: overheads.needed_headroom,
    }
}

fn disk_dtos(plan: &Plan) -> Vec<DiskDto> {
    let disks = plan.disks.iter();
    disks
        .map(|disk| DiskDto {
            class: disk.class.name(),
            chosen: disk.chosen,
            bytes_per_second: disk.class.bytes_per_second(),
            write_bytes_per_second: disk.write_bytes_per_second,
            read_bytes_per_second: disk.read_bytes_per_second,
            for_throughput: disk.for_throughput,
            for_capacity: disk.for_capacity,
            per_broker: disk.per_broker,
            bytes_per_disk: disk.bytes_per_disk,
            rebuild_seconds: disk.rebuild_seconds,
        })
        .collect()
}

fn growth_dtos(plan: &Plan) -> Vec<GrowthDto> {
    let years = plan.growth.iter();
    years
        .map(|year| GrowthDto {
            year: year.year,
            cluster_bytes: year.cluster_bytes,
            per_broker_bytes: year.per_broker_bytes,
            brokers_at_todays_size: year.brokers_at_todays_size,
        })
        .collect()
}

/// Kafka's names, as they would stand in a topic's overrides.
fn settings_map(plan: &Plan) -> BTreeMap<&'static str, i64> {
    let settings = &plan.settings;
    let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    BTreeMap::from([
        ("retention.ms", settings.retention_ms),
        ("retention.bytes", settings.retention_bytes),
        ("segment.bytes", size(settings.segment_bytes)),
        ("segment.ms", settings.segment_ms),
        ("segment.index.bytes", size(settings.segment_index_bytes)),
        ("index.interval.bytes", size(settings.index_interval_bytes)),
        ("file.delete.delay.ms", settings.file_delete_delay_ms),
        ("log.retention.check.interval.ms", settings.retention_check_interval_ms),
    ])
}

fn advice_id(advice: Advice) -> &'static str {
    match advice {
        Advice::ReplicationAboveBrokers => "replication-above-brokers",
        Advice::SingleCopy => "single-copy",
        Advice::NoBrokerTakesOver => "no-broker-takes-over",
        Advice::PartitionsAboveAdvice => "partitions-above-advice",
        Advice::PartitionsBelowNeed => "partitions-below-need",
        Advice::PartitionsBelowBrokers => "partitions-below-brokers",
        Advice::TargetBelowMean => "target-below-mean",
        Advice::HeadroomBelowOverheads => "headroom-below-overheads",
        Advice::MemoryMapsAboveDefault => "memory-maps-above-default",
        Advice::SegmentSpansRetention => "segment-spans-retention",
    }
}

fn simulation_dto(simulation: &Simulation) -> SimulationDto {
    let peak = &simulation.peak;
    let day = |day: &Day| DayDto {
        day: day.day,
        written_bytes: day.written_bytes,
        least_bytes: day.least_bytes,
        mean_bytes: day.mean_bytes,
        most_bytes: day.most_bytes,
        free_bytes: day.free_bytes,
        segments: day.segments,
    };
    SimulationDto {
        step_ms: simulation.step_ms,
        days: simulation.days.iter().map(day).collect(),
        peak_bytes: peak.total_bytes(),
        peak_day: simulation.peak_day,
        peak: FootprintDto {
            active_bytes: peak.active_bytes,
            closed_bytes: peak.closed_bytes,
            deleted_bytes: peak.deleted_bytes,
            index_bytes: peak.index_bytes,
            cleaner_bytes: peak.cleaner_bytes,
            taken_over_bytes: peak.taken_over_bytes,
        },
        steady_bytes: simulation.steady_bytes,
        flat_bytes: simulation.flat_bytes,
        capacity_bytes: simulation.capacity_bytes,
        full_on_day: simulation.full_on_day,
        projected_full_day: simulation.projected_full_day,
    }
}
