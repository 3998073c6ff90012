//! Work in any order, results in the order of the jobs, and never more of either than a few for each worker.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rayon::ThreadPool;

/// Messages of one job that may wait to be taken.
const MOST_WAITING: usize = 4;

/// Runs `work` over the jobs on the pool. What a job sends is handed to `take` on this thread: all of the first job, then all of the
/// second, and so on. Workers wait when they are too far ahead; the job that is due never does, since jobs start in order.
pub(crate) fn in_order<J: Send, M: Send>(
    pool: &ThreadPool,
    jobs: impl Iterator<Item = J>,
    work: &(impl Fn(J, &mut dyn FnMut(M)) + Sync),
    mut take: impl FnMut(M),
) {
    let most_in_flight = pool.current_num_threads().saturating_mul(2);
    pool.in_place_scope(|scope| {
        let mut in_flight: VecDeque<Receiver<M>> = VecDeque::new();
        // A worker that panicked sends nothing more; the panic goes on when the scope ends.
        let mut land = |due: Receiver<M>| due.iter().for_each(&mut take);
        for job in jobs {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            scope.spawn(move |_| run(job, work, &sender));
            in_flight.push_back(receiver);
            while in_flight.len() >= most_in_flight {
                let Some(due) = in_flight.pop_front() else { break };
                land(due);
            }
        }
        in_flight.into_iter().for_each(&mut land);
    });
}

fn run<J, M>(job: J, work: &impl Fn(J, &mut dyn FnMut(M)), sender: &SyncSender<M>) {
    // The other end lives until every message is taken.
    work(job, &mut |message| drop(sender.send(message)));
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
}
