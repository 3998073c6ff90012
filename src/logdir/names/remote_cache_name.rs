//! Names of the files in `remote-log-index-cache` (`RemoteIndexCache`).

use std::ffi::OsStr;

use super::file_name::FileKind;
use crate::format::Offset;
use crate::format::java_number::parse_java_long;

/// Whether an index of the cache is in use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RemoteCacheState {
    /// In use.
    Cached,
    /// `.deleted`: about to be removed.
    Deleted,
    /// `.tmp`: being fetched.
    Temporary,
}

/// A local copy of an index of a remote segment: `<start offset>_<segment id>.<kind>`.
///
/// The start offset is the base of the relative offsets inside. The id is base64url text, which may itself hold `_` and `-`: it
/// reaches from the first `_` to the first `.`. Brokers of 3.5 wrote one more `_` behind it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RemoteCacheName {
    /// The first offset of the remote segment.
    pub start_offset: Offset,
    /// The segment's id as it stands in the name, without the `_` of 3.5.
    pub segment_id: String,
    /// One of the three indexes.
    pub kind: FileKind,
    /// Whether it is in use.
    pub state: RemoteCacheState,
}

/// Letters that 16 bytes take in base64url without padding.
const ID_LEN: usize = 22;

impl RemoteCacheName {
    /// Reads the name of a file of the cache. `None` is a name over which a broker with tiered storage fails to start.
    pub fn parse(name: &OsStr) -> Option<Self> {
        let (start_offset, rest) = name.to_str()?.split_once('_')?;
        let (id, extension) = rest.split_once('.')?;
        let (kind, state) = match extension.split_once('.') {
            None => (extension, RemoteCacheState::Cached),
            Some((kind, "deleted")) => (kind, RemoteCacheState::Deleted),
            Some((kind, "tmp")) => (kind, RemoteCacheState::Temporary),
            Some(_) => return None,
        };
        let kind = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex]
            .into_iter()
            .find(|known| known.extension().strip_prefix('.') == Some(kind))?;
        let start_offset = Offset(parse_java_long(start_offset)?);
        let segment_id = id.strip_suffix('_').filter(|short| short.len() == ID_LEN).unwrap_or(id).to_owned();
        let is_id = segment_id.len() == ID_LEN
            && segment_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        is_id.then_some(Self { start_offset, segment_id, kind, state })
    }

    /// The name as brokers since 3.6 write it.
    pub fn to_name(&self) -> String {
        let state = match self.state {
            RemoteCacheState::Cached => "",
            RemoteCacheState::Deleted => ".deleted",
            RemoteCacheState::Temporary => ".tmp",
        };
        format!("{}_{}{}{state}", self.start_offset, self.segment_id, self.kind.extension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(name: &str) -> Option<RemoteCacheName> {
        RemoteCacheName::parse(OsStr::new(name))
    }

    #[test]
    fn the_id_may_hold_the_separators() {
        let name = parsed("200__w4NDAsKCQ-HBgUEAwIB_A.txnindex.deleted");
        let expected = RemoteCacheName {
            start_offset: Offset(200),
            segment_id: "_w4NDAsKCQ-HBgUEAwIB_A".to_owned(),
            kind: FileKind::TxnIndex,
            state: RemoteCacheState::Deleted,
        };
        assert_eq!(name, Some(expected));
    }

    #[test]
    fn names_of_3_5_lose_their_last_separator() {
        let old = parsed("300_AAAAAAAAAAAAAAAAAAAACQ_.index");
        assert_eq!(old.as_ref().map(|name| &*name.segment_id), Some("AAAAAAAAAAAAAAAAAAAACQ"));
        assert_eq!(old.map(|name| name.to_name()).as_deref(), Some("300_AAAAAAAAAAAAAAAAAAAACQ.index"));
    }

    #[test]
    fn foreign_names_are_told_apart() {
        for name in ["readme.txt", "x_AAAAAAAAAAAAAAAAAAAACQ.index", "1_AAAA.index", "1_AAAAAAAAAAAAAAAAAAAACQ.log", ""]
        {
            assert_eq!(parsed(name), None, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn names_read_back(start: i64, segment_id in "[A-Za-z0-9_-]{22}", kind in 1usize..4, state in 0usize..3) {
            let name = RemoteCacheName {
                start_offset: Offset(start),
                segment_id,
                kind: FileKind::ALL[kind],
                state: [RemoteCacheState::Cached, RemoteCacheState::Deleted, RemoteCacheState::Temporary][state],
            };
            prop_assert_eq!(parsed(&name.to_name()), Some(name));
        }
    }
}
