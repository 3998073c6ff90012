//! What a simulation found.

/// One broker's disk over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulation {
    /// Length of a step.
    pub step_ms: i64,
    /// Day by day.
    pub days: Vec<Day>,
    /// The most that was ever on disk.
    pub peak: Footprint,
    /// When that was, in days from the start.
    pub peak_day: f64,
    /// Mean of the days after the first record has expired; `None` where the simulation ends before.
    pub steady_bytes: Option<f64>,
    /// The formula's bytes for this broker without headroom, growth up to the end included.
    pub flat_bytes: f64,
    /// The disk that was planned for.
    pub capacity_bytes: f64,
    /// Day on which the disk is full, within the simulation.
    pub full_on_day: Option<f64>,
    /// Day on which growth alone fills the disk, if it goes on and nothing else happens.
    pub projected_full_day: Option<f64>,
}

/// One day of a simulation, in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Day {
    /// The day, from 0.
    pub day: u32,
    /// Written to the log.
    pub written_bytes: f64,
    /// Least on disk.
    pub least_bytes: f64,
    /// Mean on disk.
    pub mean_bytes: f64,
    /// Most on disk.
    pub most_bytes: f64,
    /// Free at the fullest moment; negative where the disk was too small.
    pub free_bytes: f64,
    /// Segments of all replicas at the end of the day.
    pub segments: u64,
}

/// What a disk holds at one moment, in bytes.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Footprint {
    /// Logs of the active segments.
    pub active_bytes: f64,
    /// Logs of the closed segments.
    pub closed_bytes: f64,
    /// Removed or replaced segments whose delete delay has not passed.
    pub deleted_bytes: f64,
    /// Index entries, and preallocated index space where that takes space.
    pub index_bytes: f64,
    /// The cleaner's unfinished output.
    pub cleaner_bytes: f64,
    /// Replicas taken over from a lost broker.
    pub taken_over_bytes: f64,
}

impl Footprint {
    /// All of it.
    pub fn total_bytes(&self) -> f64 {
        let own = self.active_bytes + self.closed_bytes + self.deleted_bytes + self.index_bytes + self.cleaner_bytes;
        own + self.taken_over_bytes
    }
}
