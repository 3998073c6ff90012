//! The only `unsafe` of the crate: files mapped into memory, for index look-ups and for `--io mmap`.
//!
//! # SIGBUS
//!
//! A mapped file that another process truncates kills this process at the first touch beyond the new end. So: bulk scans read by
//! position unless the user asks for maps; index files are mapped only while no broker holds the log dir's lock; and nothing maps
//! a file that segtool itself is about to replace. A file that is renamed or removed stays whole behind its mapping.

use std::fs::File;

/// A file's bytes as they were mapped. The length is frozen at that moment.
#[derive(Debug)]
pub(super) struct MappedFile {
    map: Option<memmap2::Mmap>,
}

impl MappedFile {
    /// Maps the first `size` bytes of an open file. Fails where the operating system does.
    #[expect(unsafe_code, reason = "mapping a file is unsafe by nature; this is the one place that does it")]
    pub(super) fn new(file: &File, size: u64) -> std::io::Result<Self> {
        let len = crate::format::len_usize(size);
        if len == 0 {
            return Ok(Self { map: None });
        }
        // SAFETY: the mapping is read-only and private to this value. Other processes may change the bytes under it: every parser
        // above treats each read as untrusted and none relies on two reads of a byte being equal for memory safety. Truncation
        // by others ends the process with SIGBUS, which the module's rules above keep to cases that the user asked for.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
        Ok(Self { map: Some(map) })
    }

    /// All mapped bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
