//! What a plan is computed from: every number, and where it came from.

/// Where an input came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A flag.
    Given,
    /// A file of settings.
    Config,
    /// Real segments.
    Measured,
    /// Other inputs, by arithmetic.
    Derived,
    /// An assumption, or Kafka's own default.
    Default,
}

/// A number and its origin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Input<T> {
    /// The number, in the unit that the field's name says.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Input<T> {
    /// A number that a flag gave.
    pub const fn given(value: T) -> Self {
        Self { value, origin: Origin::Given }
    }

    /// A number of a file of settings.
    pub const fn config(value: T) -> Self {
        Self { value, origin: Origin::Config }
    }

    /// A number measured from segments.
    pub const fn measured(value: T) -> Self {
        Self { value, origin: Origin::Measured }
    }

    /// A number that follows from others.
    pub const fn derived(value: T) -> Self {
        Self { value, origin: Origin::Derived }
    }

    /// An assumption.
    pub const fn assumed(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}

/// A class of disk by the throughput that it sustains.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DiskClass {
    /// A rotating disk.
    Hdd,
    /// A solid-state disk behind SATA.
    SataSsd,
    /// A solid-state disk behind NVMe.
    Nvme,
    /// A disk of so many MB/s (powers of 1000).
    Custom(f64),
}

impl DiskClass {
    /// Sustained throughput in bytes a second, reads and writes together.
    pub fn bytes_per_second(self) -> f64 {
        let megabytes = match self {
            Self::Hdd => 150.0,
            Self::SataSsd => 450.0,
            Self::Nvme => 2000.0,
            Self::Custom(megabytes) => megabytes,
        };
        megabytes * 1e6
    }

    /// The class as flags and JSON spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::SataSsd => "sata-ssd",
            Self::Nvme => "nvme",
            Self::Custom(_) => "custom",
        }
    }
}

/// A codec of the producer, for its usual ratio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssumedCodec {
    /// No compression.
    None,
    /// gzip.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// zstd.
    Zstd,
}

impl AssumedCodec {
    /// Compressed size as a share of the raw size, where nothing was measured.
    pub fn ratio(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Gzip | Self::Zstd => 0.29,
            Self::Snappy => 0.5,
            Self::Lz4 => 0.4,
        }
    }
}

/// All inputs of a plan. Rates are per second, `bytes` before compression unless the name says `stored`.
#[derive(Clone, PartialEq, Debug)]
pub struct Inputs {
    /// Messages that producers send a day.
    pub messages_per_day: Input<f64>,
    /// Mean size of a message before compression: key, value, headers.
    pub message_size_bytes: Input<f64>,
    /// Bytes that producers send a day before compression.
    pub bytes_per_day: Input<f64>,
    /// Stored size as a share of the raw size.
    pub compression_ratio: Input<f64>,
    /// How long records are kept.
    pub retention_days: Input<f64>,
    /// `retention.bytes` of a partition, if it limits.
    pub retention_bytes: Option<Input<f64>>,
    /// Copies of each partition.
    pub replication_factor: Input<u32>,
    /// Factor on the stored bytes for what the formula does not see.
    pub headroom: Input<f64>,
    /// Brokers that share the load evenly.
    pub brokers: Input<u32>,
    /// The busiest moment's rate over the day's mean.
    pub peak_factor: Input<f64>,
    /// Bytes a second that the topic has to take.
    pub target_throughput: Input<f64>,
    /// Bytes a second that one partition takes.
    pub partition_throughput: Input<f64>,
    /// Consumers of the largest group.
    pub consumers: Input<u32>,
    /// Partitions that were decided on; otherwise the recommended number is used.
    pub partitions: Option<Input<u32>>,
    /// `segment.bytes`; otherwise one that fits is chosen.
    pub segment_bytes: Option<Input<u64>>,
    /// `segment.ms`.
    pub segment_ms: Input<i64>,
    /// `segment.index.bytes`.
    pub segment_index_bytes: Input<u64>,
    /// `index.interval.bytes`.
    pub index_interval_bytes: Input<u64>,
    /// Mean stored size of a batch.
    pub batch_size_bytes: Input<f64>,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval_ms: Input<i64>,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: Input<i64>,
    /// The disk to plan for; all classes are listed either way.
    pub disk: Option<Input<DiskClass>>,
    /// Size of one disk, if decided.
    pub disk_size_bytes: Option<Input<f64>>,
    /// Readers that are behind and read from disk, each at the peak's rate.
    pub catch_up_readers: Input<f64>,
    /// Growth of the traffic a year: 0.5 is half as much more.
    pub growth_per_year: Input<f64>,
    /// Years that the growth table covers.
    pub years: Input<u32>,
    /// Descriptors for sockets, libraries and the rest of the process.
    pub fd_buffer: Input<u64>,
}

impl Default for Inputs {
    /// The assumptions where nothing else is known; traffic is zero.
    fn default() -> Self {
        Self {
            messages_per_day: Input::assumed(0.0),
            message_size_bytes: Input::assumed(1000.0),
            bytes_per_day: Input::derived(0.0),
            compression_ratio: Input::assumed(1.0),
            retention_days: Input::assumed(7.0),
            retention_bytes: None,
            replication_factor: Input::assumed(3),
            headroom: Input::assumed(1.2),
            brokers: Input::assumed(3),
            peak_factor: Input::assumed(2.0),
            target_throughput: Input::derived(0.0),
            partition_throughput: Input::assumed(10e6),
            consumers: Input::assumed(1),
            partitions: None,
            segment_bytes: None,
            segment_ms: Input::assumed(604_800_000),
            segment_index_bytes: Input::assumed(10 << 20),
            index_interval_bytes: Input::assumed(4096),
            batch_size_bytes: Input::assumed(16_384.0),
            retention_check_interval_ms: Input::assumed(300_000),
            file_delete_delay_ms: Input::assumed(60_000),
            disk: None,
            disk_size_bytes: None,
            catch_up_readers: Input::assumed(1.0),
            growth_per_year: Input::assumed(0.0),
            years: Input::assumed(3),
            fd_buffer: Input::assumed(1000),
        }
    }
}

impl Inputs {
    /// Fills in what follows from other inputs: bytes a day, messages a day, the target throughput.
    ///
    /// Bytes a day that were given or measured win over messages times size, and give the number of messages then.
    pub fn derive(mut self) -> Self {
        if matches!(self.bytes_per_day.origin, Origin::Derived) {
            self.bytes_per_day = Input::derived(self.messages_per_day.value * self.message_size_bytes.value);
        } else if matches!(self.messages_per_day.origin, Origin::Default | Origin::Derived) {
            let messages = self.bytes_per_day.value / self.message_size_bytes.value.max(1.0);
            self.messages_per_day = Input::derived(messages);
        }
        if matches!(self.target_throughput.origin, Origin::Derived) {
            let mean = self.bytes_per_day.value / super::SECONDS_PER_DAY;
            self.target_throughput = Input::derived(mean * self.peak_factor.value);
        }
        self
    }
}
