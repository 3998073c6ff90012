//! Layer 3: the work. Options go in, a report or a plan comes out. No flags, no printing, no clock of its own.
