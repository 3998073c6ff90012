//! `testdata/real/4.4.0/shop`: a log dir that a real broker filled, for the README and for first looks.

use std::fs;
use std::path::Path;

use super::{Broker, Isolation, kafka};
use crate::support::{Sandbox, copy_tree, files_below, testdata};

const VERSION: &str = "4.4.0";
/// Set (to anything), the shipped directory is replaced by the one just made. Its ids and times are then new ones.
const REPLACE: &str = "REPLACE_SHOP";

/// Segments of a day; nothing is deleted or compacted by the broker. Small indexes, since a broker preallocates them.
const TOPICS: [&str; 3] = [
    "orders:2:segment.ms=86400000:segment.index.bytes=4096:index.interval.bytes=1024",
    "customers:1:cleanup.policy=compact:min.cleanable.dirty.ratio=1.0:segment.ms=86400000:segment.index.bytes=4096:index.interval.bytes=1024",
    "payments:1:segment.index.bytes=4096:index.interval.bytes=1024",
];

#[test]
#[ignore = "starts a real broker"]
fn the_shop_of_the_readme_can_be_made_again() {
    if kafka::is_missing() {
        return;
    }
    let log_dir = Sandbox::empty();
    let settings = [("log.index.size.max.bytes", "4096")];
    let broker = Broker::start_with(VERSION, &[log_dir.path()], &settings);
    broker.client("create", &TOPICS);
    kafka::run_java(VERSION, "Shop.java", &[&broker.address]);
    let count = |topic: &str, isolation| broker.consume_all(topic, isolation).len();
    assert_eq!(count("orders", Isolation::ReadUncommitted), 216);
    assert_eq!(count("customers", Isolation::ReadUncommitted), 96);
    assert_eq!(count("payments", Isolation::ReadUncommitted), 30);
    assert_eq!(count("payments", Isolation::ReadCommitted), 21);
    broker.stop();

    trim_metadata_indexes(&log_dir);
    let aborted = files_below(&log_dir.join("payments-0")).into_iter().filter(|path| is_transaction_index(path));
    let aborted: usize = aborted.map(|path| log_dir.read(Path::new("payments-0").join(path)).len() / 34).sum();
    assert_eq!(aborted, 2);
    if std::env::var_os(REPLACE).is_some() {
        let shipped = testdata("real").join(VERSION).join("shop");
        if shipped.exists() {
            fs::remove_dir_all(&shipped).unwrap();
        }
        fs::create_dir_all(&shipped).unwrap();
        copy_tree(log_dir.path(), &shipped);
    }
}

fn is_transaction_index(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "txnindex")
}

/// 4.4 leaves 10 MiB of zeros in each index of the metadata log, also after a clean stop; 4 KiB of them are enough here.
fn trim_metadata_indexes(log_dir: &Sandbox) {
    for (extension, size) in [("index", 4096), ("timeindex", 4092)] {
        let path = log_dir.join(format!("__cluster_metadata-0/00000000000000000000.{extension}"));
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        if file.metadata().unwrap().len() > size {
            file.set_len(size).unwrap();
        }
    }
}
