//! Work in any order, results in the order of the jobs, and never more of either than a few for each worker.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rayon::ThreadPool;

/// Messages of one job that may wait to be taken.
const MOST_WAITING: usize = 4;

/// Runs `work` over the jobs on the pool. What a job sends is handed to `take` on this thread: all of the first job, then all of the
/// second, and so on. Workers wait when they are too far ahead; the job that is due never does, since jobs start in order.
pub(crate) fn in_order<J: Send, M: Send>(
    pool: &ThreadPool,
    mut jobs: impl Iterator<Item = J>,
    work: &(impl Fn(J, &mut dyn FnMut(M)) + Sync),
    mut take: impl FnMut(M),
) {
    let work = |job: J, deliver: Deliver<'_, M>| {
        work(job, &mut |message| {
            let _ = deliver(message);
        });
    };
    let outcome = feed_in_order(
        pool,
        |run| jobs.try_for_each(run),
        &work,
        |message| {
            take(message);
            Ok::<(), Infallible>(())
        },
    );
    // There is no error to have.
    let Ok(()) = outcome;
}

/// Hands a message over; breaks when nobody will take it.
pub(crate) type Deliver<'d, M> = &'d mut dyn FnMut(M) -> ControlFlow<()>;

/// [`in_order`] for jobs that are made one by one and may end early: `feed` is given a function that takes a job. An error of `feed`
/// is returned when all jobs before it have been taken, one of `take` at once.
pub(crate) fn feed_in_order<J: Send, M: Send, E>(
    pool: &ThreadPool,
    feed: impl FnOnce(&mut dyn FnMut(J) -> Result<(), E>) -> Result<(), E>,
    work: &(impl Fn(J, Deliver<'_, M>) + Sync),
    mut take: impl FnMut(M) -> Result<(), E>,
) -> Result<(), E> {
    let most_in_flight = pool.current_num_threads().saturating_mul(2);
    pool.in_place_scope(|scope| {
        let mut in_flight: VecDeque<Receiver<M>> = VecDeque::new();
        let is_over = Cell::new(false);
        // A worker that panicked sends nothing more; the panic goes on when the scope ends.
        let mut land = |due: Receiver<M>| {
            let outcome = due.iter().try_for_each(&mut take);
            is_over.set(outcome.is_err());
            outcome
        };
        let outcome = feed(&mut |job| {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            scope.spawn(move |_| run(job, work, &sender));
            in_flight.push_back(receiver);
            while in_flight.len() >= most_in_flight {
                let Some(due) = in_flight.pop_front() else { break };
                land(due)?;
            }
            Ok(())
        });
        for due in in_flight {
            if is_over.get() {
                break;
            }
            land(due)?;
        }
        outcome
    })
}

fn run<J, M>(job: J, work: &impl Fn(J, Deliver<'_, M>), sender: &SyncSender<M>) {
    work(job, &mut |message| match sender.send(message) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_the_order_of_the_jobs_for_any_number_of_workers() {
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let work = |job: u32, send: &mut dyn FnMut((u32, u32))| {
                // The first jobs take longest.
                std::thread::yield_now();
                (0..job % 7 * 3).for_each(|message| send((job, message)));
            };
            let mut taken = Vec::new();
            in_order(&pool, 0..200u32, &work, |message| taken.push(message));
            let expected: Vec<_> =
                (0..200u32).flat_map(|job| (0..job % 7 * 3).map(move |message| (job, message))).collect();
            assert_eq!(taken, expected, "{threads} threads");
        }
    }

    #[test]
    fn an_error_ends_the_work_where_it_belongs_in_the_order() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let work = |job: u32, deliver: Deliver<'_, u32>| {
            let _ = (0..3).try_for_each(|_| deliver(job));
        };
        let mut taken = Vec::new();
        let outcome = feed_in_order(
            &pool,
            |run| (0..10).try_for_each(&mut *run).and(Err("feed")),
            &work,
            |message| {
                taken.push(message);
                Ok(())
            },
        );
        assert_eq!((outcome, taken.len(), taken.last()), (Err("feed"), 30, Some(&9)));
        let mut taken = 0;
        let outcome = feed_in_order(
            &pool,
            |run| (0..).try_for_each(run),
            &work,
            |message| {
                taken += 1;
                if message < 5 { Ok(()) } else { Err("take") }
            },
        );
        assert_eq!((outcome, taken), (Err("take"), 16));
    }
}
