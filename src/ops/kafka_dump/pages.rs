//! Where events go: into pages that any thread fills, and that one thread takes in order.

use std::ops::ControlFlow;

use rayon::ThreadPool;

use super::event::Event;

/// What becomes of the events of a walk.
pub struct Pages<'p, P> {
    /// Who fills pages.
    pub pool: &'p ThreadPool,
    /// Adds an event to a page; breaks when the page is full.
    pub see: &'p (dyn Fn(&mut P, &Event<'_>) -> ControlFlow<()> + Sync),
    /// Takes the next page; breaks when no more are wanted.
    pub take: &'p mut dyn FnMut(P) -> ControlFlow<()>,
}

impl<P> std::fmt::Debug for Pages<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("pool", self.pool).finish_non_exhaustive()
    }
}

impl<P: Default> Pages<'_, P> {
    /// Fills pages on this thread with what a walk sees.
    pub(super) fn gather(
        &mut self,
        walk: impl FnOnce(&mut dyn FnMut(Event<'_>) -> ControlFlow<()>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut page = P::default();
        walk(&mut |event| match (self.see)(&mut page, &event) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => (self.take)(std::mem::take(&mut page)),
        })?;
        (self.take)(page)
    }
}
