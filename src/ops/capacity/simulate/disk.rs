//! The broker's disk: its replicas, the clock, the days.

use super::super::SECONDS_PER_DAY;
use super::super::formula::Plan;
use super::super::settings::floor_i64;
use super::cleaner::Cleaner;
use super::replica::Replica;
use super::report::{Day, Footprint, Simulation};

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
const DAYS_PER_YEAR: f64 = 365.0;
/// Bytes of an entry in `.index` and in `.timeindex` together.
const INDEX_ENTRY_BYTES: f64 = 20.0;
/// Replicas are stepped in at most so many groups.
const MOST_GROUPS: u64 = 24;
/// A segment takes four steps to fill, within these bounds.
const SHORTEST_STEP_MS: i64 = 1_000;
const LONGEST_STEP_MS: i64 = 60_000;
/// A longer simulation takes longer steps.
const MOST_STEPS: i64 = 200_000;

/// How the traffic of a day is spread over its 24 hours, in UTC; scaled so that the mean is 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DailyProfile([f64; 24]);

impl DailyProfile {
    /// The same traffic in each hour.
    pub const FLAT: Self = Self([1.0; 24]);
    /// A day with its peak in the evening, at twice the mean, and a quiet night.
    pub const EVENING: Self = Self([
        0.40, 0.30, 0.25, 0.25, 0.30, 0.40, 0.60, 0.80, 1.00, 1.10, 1.15, 1.20, 1.20, 1.20, 1.15, 1.15, 1.20, 1.35,
        1.60, 1.85, 2.00, 1.70, 1.15, 0.70,
    ]);

    /// A profile with these weights; `None` if there are not 24, one is negative or all are zero.
    pub fn new(weights: &[f64]) -> Option<Self> {
        let mut hours: [f64; 24] = weights.try_into().ok()?;
        let sum: f64 = hours.iter().sum();
        if hours.iter().any(|weight| !weight.is_finite() || *weight < 0.0) || !sum.is_finite() || sum <= 0.0 {
            return None;
        }
        for hour in &mut hours {
            *hour *= 24.0 / sum;
        }
        Some(Self(hours))
    }

    /// The 24 weights, mean 1.
    pub fn weights(&self) -> &[f64; 24] {
        &self.0
    }

    /// The busiest hour over the mean.
    pub fn peak_factor(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    fn at(&self, now_ms: i64) -> f64 {
        let hour = usize::try_from(now_ms.rem_euclid(DAY_MS) / HOUR_MS).unwrap_or(0);
        self.0.get(hour).copied().unwrap_or(1.0)
    }
}

/// Whether the zero-filled tail of an active segment's indexes takes space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexPreallocation {
    /// A file system with sparse files (ext4, xfs): only written pages count.
    Sparse,
    /// Preallocated space counts in full.
    Allocated,
}

/// Log compaction in a simulation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compaction {
    /// Stored bytes of one record for each distinct key of a partition.
    pub key_space_bytes: f64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// Bytes a second that the cleaner rewrites, all threads together.
    pub cleaner_bytes_per_second: f64,
}

/// What removes data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cleanup {
    /// `cleanup.policy` contains `delete`.
    pub deletes: bool,
    /// `cleanup.policy` contains `compact`.
    pub compaction: Option<Compaction>,
}

/// What to simulate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimulationOptions {
    /// How long.
    pub duration_days: f64,
    /// Traffic over the day.
    pub profile: DailyProfile,
    /// What removes data.
    pub cleanup: Cleanup,
    /// Whether preallocated indexes take space.
    pub index_preallocation: IndexPreallocation,
    /// Size of the broker's disks together; otherwise the plan's bytes for a broker.
    pub capacity_bytes: Option<f64>,
    /// Day on which another broker is lost for good and its replicas are spread over the others.
    pub lost_broker_day: Option<f64>,
    /// Bytes a second at which this broker takes replicas over.
    pub rebuild_bytes_per_second: f64,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self {
            duration_days: 30.0,
            profile: DailyProfile::FLAT,
            cleanup: Cleanup { deletes: true, compaction: None },
            index_preallocation: IndexPreallocation::Sparse,
            capacity_bytes: None,
            lost_broker_day: None,
            rebuild_bytes_per_second: 100e6,
        }
    }
}

/// Steps the disk of one of the plan's brokers from empty on.
pub fn simulate(plan: &Plan, options: &SimulationOptions) -> Simulation {
    let mut disk = Disk::new(plan, options);
    let end_ms = floor_i64(options.duration_days * DAY_MS as f64).max(DAY_MS);
    let step_ms = (disk.segment_fill_ms() / 4).clamp(SHORTEST_STEP_MS, LONGEST_STEP_MS).max(end_ms / MOST_STEPS);
    let mut days = DayBook::new(disk.capacity_bytes, disk.warm_up_ms());
    let mut now_ms = 0;
    while now_ms < end_ms {
        now_ms = now_ms.saturating_add(step_ms);
        let written = disk.step(now_ms, step_ms);
        days.note(now_ms, written, disk.footprint(), disk.segment_count());
    }
    days.finish(&disk, step_ms, end_ms)
}

struct Disk<'a> {
    plan: &'a Plan,
    options: &'a SimulationOptions,
    replicas: Vec<Replica>,
    cleaner: Option<Cleaner>,
    /// Stored bytes a second of one replica at the start, at the mean of the day.
    replica_rate: f64,
    capacity_bytes: f64,
    next_check_ms: i64,
    taken_over_bytes: f64,
}

impl<'a> Disk<'a> {
    fn new(plan: &'a Plan, options: &'a SimulationOptions) -> Self {
        let inputs = &plan.inputs;
        let count = plan.open_files.partition_replicas.max(1);
        let groups = count.min(MOST_GROUPS);
        let replicas = (0..groups)
            .map(|index| {
                let weight = count / groups + u64::from(index < count % groups);
                Replica::new(weight as f64, (index + 1) as f64 / groups as f64)
            })
            .collect();
        let copies = f64::from(inputs.replication_factor.value) / f64::from(inputs.brokers.value.max(1));
        let broker_rate = plan.storage.stored_bytes_per_day * copies / SECONDS_PER_DAY;
        Self {
            plan,
            options,
            replicas,
            cleaner: options.cleanup.compaction.map(Cleaner::new),
            replica_rate: broker_rate / count as f64,
            capacity_bytes: options.capacity_bytes.unwrap_or(plan.storage.per_broker_bytes),
            next_check_ms: 0,
            taken_over_bytes: 0.0,
        }
    }

    /// Milliseconds in which a replica fills a segment, at the mean of the day.
    fn segment_fill_ms(&self) -> i64 {
        floor_i64(self.plan.settings.segment_bytes as f64 / self.replica_rate.max(1e-9) * 1000.0)
    }

    /// Time after which what is removed keeps pace with what is written.
    fn warm_up_ms(&self) -> i64 {
        let settings = &self.plan.settings;
        let segment_ms = floor_i64(self.plan.open_files.segment_days * DAY_MS as f64);
        let waits = settings.retention_check_interval_ms.saturating_add(settings.file_delete_delay_ms);
        settings.retention_ms.saturating_add(segment_ms).saturating_add(waits)
    }

    fn growth_at(&self, now_ms: i64) -> f64 {
        let years = now_ms as f64 / DAY_MS as f64 / DAYS_PER_YEAR;
        (1.0 + self.plan.inputs.growth_per_year.value).powf(years)
    }

    /// Moves on by one step and returns the bytes written in it.
    fn step(&mut self, now_ms: i64, step_ms: i64) -> f64 {
        let seconds = step_ms as f64 / 1000.0;
        let traffic = self.options.profile.at(now_ms - step_ms) * self.growth_at(now_ms);
        let bytes = self.replica_rate * seconds * traffic;
        let settings = &self.plan.settings;
        let mut written = 0.0;
        for replica in &mut self.replicas {
            replica.append(bytes, now_ms, settings);
            written += bytes * replica.weight;
            replica.purge(now_ms);
        }
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.advance(&mut self.replicas, now_ms, step_ms, settings);
        }
        if self.options.cleanup.deletes && now_ms >= self.next_check_ms {
            let interval_ms = settings.retention_check_interval_ms.max(1);
            self.next_check_ms = (now_ms / interval_ms).saturating_add(1).saturating_mul(interval_ms);
            for replica in &mut self.replicas {
                replica.retain(now_ms, settings);
            }
        }
        self.take_over(now_ms, seconds);
        written
    }

    /// Copies the share of a lost broker's replicas that falls to this broker, no faster than the rebuild rate.
    fn take_over(&mut self, now_ms: i64, seconds: f64) {
        let lost_ms = self.options.lost_broker_day.map(|day| floor_i64(day * DAY_MS as f64));
        if lost_ms.is_none_or(|lost_ms| now_ms < lost_ms) {
            return;
        }
        let (brokers, copies) = (self.plan.inputs.brokers.value, self.plan.inputs.replication_factor.value);
        if brokers <= copies || brokers < 2 {
            return;
        }
        let share = self.own_footprint().total_bytes() / f64::from(brokers - 1);
        self.taken_over_bytes = share.min(self.taken_over_bytes + self.options.rebuild_bytes_per_second * seconds);
    }

    fn own_footprint(&self) -> Footprint {
        let settings = &self.plan.settings;
        let mut sum = Footprint::default();
        let mut count = 0.0;
        for replica in &self.replicas {
            sum.active_bytes += replica.active_bytes * replica.weight;
            sum.closed_bytes += replica.closed_bytes() * replica.weight;
            sum.deleted_bytes += replica.deleted_bytes() * replica.weight;
            count += replica.weight;
        }
        let interval = (settings.index_interval_bytes as f64).max(self.plan.inputs.batch_size_bytes.value).max(1.0);
        let share = INDEX_ENTRY_BYTES / interval;
        sum.index_bytes = match self.options.index_preallocation {
            IndexPreallocation::Sparse => (sum.active_bytes + sum.closed_bytes + sum.deleted_bytes) * share,
            IndexPreallocation::Allocated => {
                (sum.closed_bytes + sum.deleted_bytes) * share + count * settings.segment_index_bytes as f64 * 2.0
            }
        };
        sum.cleaner_bytes = self.cleaner.as_ref().map_or(0.0, |cleaner| cleaner.output_bytes(settings));
        sum
    }

    fn footprint(&self) -> Footprint {
        Footprint { taken_over_bytes: self.taken_over_bytes, ..self.own_footprint() }
    }

    fn segment_count(&self) -> u64 {
        let count = |replica: &Replica| replica.segment_count() as f64 * replica.weight;
        super::super::settings::floor_u64(self.replicas.iter().map(count).sum())
    }
}

/// Collects what is reported, step by step.
struct DayBook {
    capacity_bytes: f64,
    warm_up_ms: i64,
    days: Vec<Day>,
    steps_of_day: f64,
    peak: Footprint,
    peak_ms: i64,
    full_ms: Option<i64>,
    steady_sum: f64,
    steady_steps: f64,
}

impl DayBook {
    fn new(capacity_bytes: f64, warm_up_ms: i64) -> Self {
        Self {
            capacity_bytes,
            warm_up_ms,
            days: Vec::new(),
            steps_of_day: 0.0,
            peak: Footprint::default(),
            peak_ms: 0,
            full_ms: None,
            steady_sum: 0.0,
            steady_steps: 0.0,
        }
    }

    fn note(&mut self, now_ms: i64, written: f64, footprint: Footprint, segments: u64) {
        let total = footprint.total_bytes();
        let number = u32::try_from((now_ms - 1).max(0) / DAY_MS).unwrap_or(u32::MAX);
        if self.days.last().is_none_or(|day| day.day != number) {
            self.steps_of_day = 0.0;
            self.days.push(Day {
                day: number,
                written_bytes: 0.0,
                least_bytes: total,
                mean_bytes: 0.0,
                most_bytes: total,
                free_bytes: 0.0,
                segments: 0,
            });
        }
        if let Some(day) = self.days.last_mut() {
            self.steps_of_day += 1.0;
            day.written_bytes += written;
            day.least_bytes = day.least_bytes.min(total);
            day.most_bytes = day.most_bytes.max(total);
            day.mean_bytes += (total - day.mean_bytes) / self.steps_of_day;
            day.free_bytes = self.capacity_bytes - day.most_bytes;
            day.segments = segments;
        }
        if total > self.peak.total_bytes() {
            self.peak = footprint;
            self.peak_ms = now_ms;
        }
        if total > self.capacity_bytes && self.full_ms.is_none() {
            self.full_ms = Some(now_ms);
        }
        if now_ms >= self.warm_up_ms {
            self.steady_sum += total;
            self.steady_steps += 1.0;
        }
    }

    fn finish(self, disk: &Disk<'_>, step_ms: i64, end_ms: i64) -> Simulation {
        let in_days = |ms: i64| ms as f64 / DAY_MS as f64;
        let growth = 1.0 + disk.plan.inputs.growth_per_year.value;
        let peak = self.peak.total_bytes();
        let room = self.capacity_bytes / peak;
        let warm = end_ms > self.warm_up_ms;
        let projected = warm && growth > 1.0 && room > 1.0 && peak > 0.0;
        Simulation {
            step_ms,
            days: self.days,
            peak: self.peak,
            peak_day: in_days(self.peak_ms),
            steady_bytes: (self.steady_steps > 0.0).then(|| self.steady_sum / self.steady_steps),
            flat_bytes: disk.plan.storage.per_broker_flat_bytes * disk.growth_at(end_ms),
            capacity_bytes: self.capacity_bytes,
            full_on_day: self.full_ms.map(in_days),
            projected_full_day: projected.then(|| in_days(self.peak_ms) + room.ln() / growth.ln() * DAYS_PER_YEAR),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::formula::plan;
    use super::super::super::inputs::{Input, Inputs};
    use super::*;

    fn inputs() -> Inputs {
        Inputs {
            bytes_per_day: Input::given(86_400.0 * 20e6),
            retention_days: Input::given(2.0),
            partitions: Some(Input::given(24)),
            ..Inputs::default()
        }
    }

    #[test]
    fn the_disk_fills_to_the_formula_and_stays_there() {
        let plan = plan(inputs());
        let simulation = simulate(&plan, &SimulationOptions { duration_days: 6.0, ..SimulationOptions::default() });
        assert_eq!(simulation.days.len(), 6);
        let steady = simulation.steady_bytes.unwrap();
        assert!(steady > simulation.flat_bytes && steady < simulation.flat_bytes * 1.2, "{steady}");
        assert!(simulation.full_on_day.is_none());
        assert!(simulation.peak.total_bytes() >= steady);
    }

    #[test]
    fn a_disk_that_is_too_small_fills_on_the_day_arithmetic_says() {
        let plan = plan(inputs());
        let capacity_bytes = Some(86_400.0 * 20e6);
        let options = SimulationOptions { duration_days: 3.0, capacity_bytes, ..SimulationOptions::default() };
        let full = simulate(&plan, &options).full_on_day.unwrap();
        assert!((full - 1.0).abs() < 0.01, "{full}");
    }

    #[test]
    fn a_lost_broker_puts_its_share_on_the_others() {
        let plan = plan(Inputs { brokers: Input::given(5), ..inputs() });
        let alone = SimulationOptions { duration_days: 8.0, ..SimulationOptions::default() };
        let lost = SimulationOptions { lost_broker_day: Some(4.0), ..alone };
        let (without, with) = (simulate(&plan, &alone), simulate(&plan, &lost));
        let ratio = with.peak.total_bytes() / without.peak.total_bytes();
        assert!((ratio - 1.25).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn growth_projects_the_day_on_which_the_disk_is_full() {
        let plan = plan(Inputs { growth_per_year: Input::given(0.5), ..inputs() });
        let simulation = simulate(&plan, &SimulationOptions { duration_days: 10.0, ..SimulationOptions::default() });
        let day = simulation.projected_full_day.unwrap();
        let grown = simulation.peak.total_bytes() * 1.5_f64.powf((day - simulation.peak_day) / 365.0);
        assert!((grown / simulation.capacity_bytes - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_profile_moves_the_peak_but_not_the_day() {
        let plan = plan(Inputs { retention_days: Input::given(0.25), ..inputs() });
        let flat = SimulationOptions { duration_days: 3.0, ..SimulationOptions::default() };
        let evening = SimulationOptions { profile: DailyProfile::EVENING, ..flat };
        let (flat, evening) = (simulate(&plan, &flat), simulate(&plan, &evening));
        assert!(evening.peak.total_bytes() > flat.peak.total_bytes() * 1.3);
        let written = |simulation: &Simulation| simulation.days.last().map_or(0.0, |day| day.written_bytes);
        assert!((written(&evening) / written(&flat) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn preallocated_indexes_count_only_where_they_take_space() {
        let plan = plan(inputs());
        let sparse = SimulationOptions { duration_days: 1.0, ..SimulationOptions::default() };
        let allocated = SimulationOptions { index_preallocation: IndexPreallocation::Allocated, ..sparse };
        let more = simulate(&plan, &allocated).peak.index_bytes - simulate(&plan, &sparse).peak.index_bytes;
        let preallocated = plan.overheads.index_preallocation_bytes;
        assert!(more > 0.6 * preallocated && more <= preallocated, "{more} of {preallocated}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn steady_state_is_the_closed_form_within_one_segment_a_partition(
            megabytes_per_second in 0.5..50.0,
            retention_days in 0.2..0.6,
            partitions in 1..60_u32,
            segment_mib in 64..512_u64,
        ) {
            let plan = plan(Inputs {
                bytes_per_day: Input::given(86_400.0 * 1e6 * megabytes_per_second),
                retention_days: Input::given(retention_days),
                partitions: Some(Input::given(partitions)),
                segment_bytes: Some(Input::given(segment_mib << 20)),
                ..Inputs::default()
            });
            let options = SimulationOptions { duration_days: 2.0, ..SimulationOptions::default() };
            let simulation = simulate(&plan, &options);
            let settings = &plan.settings;
            let rate_per_ms = plan.storage.stored_bytes_per_day / DAY_MS as f64;
            let held_ms = settings.retention_ms + settings.file_delete_delay_ms
                + settings.retention_check_interval_ms / 2;
            let closed_form = rate_per_ms * held_ms as f64 * (1.0 + INDEX_ENTRY_BYTES / 16_384.0);
            let segment = settings.segment_bytes as f64 * 1.01;
            let steady = simulation.steady_bytes.unwrap();
            prop_assert!((steady - closed_form).abs() <= segment * f64::from(partitions), "{steady} {closed_form}");
        }
    }
}
