//! zstd (RFC 8878) as zstd-jni's stream reads it: frames and skippable frames one after the other, windows up to 128 MiB, no
//! dictionaries, and nothing else in between or behind.

use std::fmt;

use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name, is_error_kind};

use super::super::Position;
use super::output::Output;
use super::source::{Pause, Source, Step};
use super::{CodecFault, CodecOddity, StreamPart, Unsupported};

/// The largest window that libzstd decodes unless told otherwise (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`), and so the largest Kafka reads.
const MOST_WINDOW_LOG: u32 = 27;

/// zstd-jni reads its input in pieces of this size (`ZSTD_DStreamInSize`).
const JNI_BUFFER: u64 = 128 * 1024 + 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    BetweenFrames,
    InFrame,
    /// In a frame, with output that waits for room.
    Flushing,
}

/// One context for all streams of a thread: making one costs more than decoding a small batch.
pub(super) struct ZstdDecoder {
    context: DCtx<'static>,
    state: State,
    frame_start: Position,
}

impl fmt::Debug for ZstdDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdDecoder").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Default for ZstdDecoder {
    fn default() -> Self {
        let mut context = DCtx::create();
        // Fails only for values out of range, which 27 is not.
        let _ = context.set_parameter(DParameter::WindowLogMax(MOST_WINDOW_LOG));
        Self { context, state: State::BetweenFrames, frame_start: Position(0) }
    }
}

impl ZstdDecoder {
    pub(super) fn start(&mut self) {
        // Cannot fail for the session alone.
        let _ = self.context.reset(ResetDirective::SessionOnly);
        self.state = State::BetweenFrames;
    }

    pub(super) fn step(
        &mut self,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        match self.state {
            State::BetweenFrames if source.is_exhausted() => return Ok(Step::Finished),
            State::BetweenFrames => {
                source.demand(1, StreamPart::Frame)?;
                self.frame_start = source.position();
                self.state = State::InFrame;
            }
            State::InFrame if source.is_exhausted() => return self.end_inside_frame(source, oddities),
            State::InFrame => source.demand(1, StreamPart::Frame)?,
            State::Flushing => {}
        }
        let room = output.more_room();
        let room_len = room.len();
        let mut out = OutBuffer::around(room);
        let mut input = InBuffer::around(source.rest());
        let hint = self
            .context
            .decompress_stream(&mut out, &mut input)
            .map_err(|code| source.fault_at(self.frame_start, fault_of(code)))?;
        let (taken, given) = (input.pos(), out.pos());
        source.skip(taken);
        output.advance(given, source.position())?;
        self.state = match hint {
            0 => State::BetweenFrames,
            _ if given == room_len => State::Flushing,
            _ => State::InFrame,
        };
        Ok(Step::Continue)
    }

    /// The data ends inside a frame. zstd-jni notes that a frame is unfinished only when it refills its buffer, so that the end of
    /// a later frame goes unmissed where the buffer that holds the end of the frame before holds everything else as well.
    fn end_inside_frame(&self, source: &Source<'_>, oddities: &mut Vec<CodecOddity>) -> Result<Step, Pause> {
        let position = self.frame_start;
        let count = source.position().since(position);
        let last_refill = source.position().0.saturating_sub(1) / JNI_BUFFER * JNI_BUFFER;
        if last_refill >= position.0 {
            return Err(source.fault(CodecFault::CutOff(StreamPart::Frame)));
        }
        oddities.push(CodecOddity::CutFrame { position, count });
        Ok(Step::Finished)
    }
}

fn fault_of(code: usize) -> CodecFault {
    let is = |kind| is_error_kind(code, kind);
    if is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge) {
        return Unsupported::Window.into();
    }
    if is(ZSTD_ErrorCode::ZSTD_error_dictionary_wrong) {
        return Unsupported::Dictionary.into();
    }
    if is(ZSTD_ErrorCode::ZSTD_error_prefix_unknown) {
        return CodecFault::WrongMagic(StreamPart::Frame);
    }
    CodecFault::Corrupt { part: StreamPart::Frame, reason: get_error_name(code) }
}
