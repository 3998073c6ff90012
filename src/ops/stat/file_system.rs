//! What about a file system deserves a look before a broker is put on it.

use super::report::FileSystemConcern;
use crate::logdir::{FileSystem, Mount};

const NETWORK: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "lustre", "9p"];
const MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The concerns, in the order of the enum.
pub(super) fn concerns(file_system: &FileSystem) -> Vec<FileSystemConcern> {
    let mut found = file_system.mount.as_ref().map_or_else(Vec::new, mount_concerns);
    let share = |part: u64, of: u64| if of > 0 { part as f64 / of as f64 } else { 1.0 };
    if share(file_system.available_bytes, file_system.total_bytes) < 0.1 {
        found.push(FileSystemConcern::NearlyFull);
    }
    // The total number of inodes is not asked for: a segment takes up to five, so this is room for 2000 segments.
    if file_system.free_inodes.is_some_and(|free| free < 10_000) {
        found.push(FileSystemConcern::FewInodes);
    }
    found
}

fn mount_concerns(mount: &Mount) -> Vec<FileSystemConcern> {
    let has = |option: &str| mount.options.iter().any(|given| given == option);
    let kind = mount.kind.as_str();
    let checks = [
        (NETWORK.contains(&kind), FileSystemConcern::Network),
        (MEMORY.contains(&kind), FileSystemConcern::Memory),
        (has("ro"), FileSystemConcern::ReadOnly),
        // The kernel names neither where each read counts.
        (!has("ro") && !has("noatime") && !has("relatime"), FileSystemConcern::AccessTimes),
        (has("nobarrier") || has("barrier=0"), FileSystemConcern::NoBarriers),
        (has("data=writeback"), FileSystemConcern::WriteBackJournal),
    ];
    checks.into_iter().filter(|(applies, _)| *applies).map(|(_, concern)| concern).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, options: &str, available: u64) -> Vec<FileSystemConcern> {
        concerns(&FileSystem {
            total_bytes: 1000,
            free_bytes: available,
            available_bytes: available,
            free_inodes: Some(1_000_000),
            mount: Some(Mount {
                mount_point: "/".into(),
                kind: kind.to_owned(),
                source: "none".to_owned(),
                options: options.split(',').map(str::to_owned).collect(),
            }),
        })
    }

    #[test]
    fn what_brokers_suffer_from_is_named() {
        assert_eq!(found("xfs", "rw,noatime", 500), []);
        assert_eq!(found("ext4", "rw,relatime", 500), []);
        assert_eq!(found("nfs4", "rw,noatime", 500), [FileSystemConcern::Network]);
        assert_eq!(
            found("ext4", "rw,nobarrier,data=writeback", 50),
            [
                FileSystemConcern::AccessTimes,
                FileSystemConcern::NoBarriers,
                FileSystemConcern::WriteBackJournal,
                FileSystemConcern::NearlyFull
            ]
        );
    }
}
