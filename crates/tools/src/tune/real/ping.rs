//! Messages on this machine: a job for each protocol, in which rank 0 and rank 1 send each other messages in turn.
//!
//! The setting of the protocol holds for a whole job, so the jobs of the protocols run in turn, several times. The figure of a
//! protocol at a size is the median over its jobs.

use super::{BATCHES, BYTE, Here, MeasuringRank, SentData, WORLD};
use clap::Parser;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weft_p2p::protocol::MessageProtocol;

/// Arguments of `weft ping-rank`, which `weft explain --check send` starts as an MPI program of two ranks.
#[derive(Parser, Debug)]
pub struct PingRank {
    /// The data that ranks send in each message.
    #[arg(long, value_enum, default_value_t = SentData::Written)]
    data: SentData,
    library: PathBuf,
    /// Milliseconds for each size.
    time: u64,
    #[arg(value_delimiter = ',')]
    bytes: Vec<usize>,
}

/// Tag of the messages.
const TAG: usize = 1;

impl Here {
    /// Returns the microseconds of a message by each of `protocols`, for each of `bytes`. Calls `done` after each job.
    pub fn messages(
        &self,
        protocols: &[MessageProtocol],
        bytes: &[usize],
        done: &dyn Fn(),
    ) -> Vec<Result<Vec<f64>, String>> {
        let mut all: Vec<Result<Vec<Vec<f64>>, String>> =
            protocols.iter().map(|_| Ok(vec![Vec::new(); bytes.len()])).collect();
        for _ in 0..BATCHES {
            for (result, &protocol) in all.iter_mut().zip(protocols) {
                if let Ok(times) = result {
                    match self.message_job(protocol, bytes) {
                        Ok(job) => times.iter_mut().zip(job).for_each(|(list, us)| list.push(us)),
                        Err(why) => *result = Err(why),
                    }
                }
                done();
            }
        }
        let median = |mut list: Vec<f64>| {
            list.sort_by(f64::total_cmp);
            list[list.len() / 2]
        };
        all.into_iter().map(|result| Ok(result?.into_iter().map(median).collect())).collect()
    }

    /// Number of jobs that [`Here::messages`] runs for each protocol.
    pub const JOBS: u64 = BATCHES as u64;

    /// Runs a job and returns its figures.
    fn message_job(&self, protocol: MessageProtocol, bytes: &[usize]) -> Result<Vec<f64>, String> {
        let sizes: Vec<String> = bytes.iter().map(usize::to_string).collect();
        let time = (self.time / BATCHES as u64).max(1);
        let mut command = self.job(2, "ping-rank");
        command.env("WEFT_PROTOCOL", protocol.name());
        command.arg(time.to_string()).arg(sizes.join(","));
        let times = self.figures(&mut command)?;
        if times.len() == bytes.len() { Ok(times) } else { Err("the job printed no times".into()) }
    }
}

/// Runs a rank. Rank 0 prints a line with the microseconds of a message for each size.
pub fn rank(args: &PingRank) -> Result<(), String> {
    let program = MeasuringRank::start(&args.library)?;
    let most = args.bytes.iter().copied().max().unwrap_or(0);
    let memory = || vec![0u64; most.div_ceil(8).max(1)];
    let (mut send, mut receive) = (memory(), memory());
    let data = args.data;
    let write = |send: &mut Vec<u64>, bytes: usize, value: usize| {
        if data == SentData::Written {
            send[..bytes.div_ceil(8)].fill(value as u64);
            std::hint::black_box(send);
        }
    };
    let mut lap = |bytes: usize, count: usize| {
        let start = Instant::now();
        (0..count).for_each(|i| write(&mut send, bytes, i));
        let writing = 2 * start.elapsed();
        let peer = 1 - program.me;
        let out = [send.as_mut_ptr() as usize, bytes, BYTE, peer, TAG, WORLD];
        let into = [receive.as_mut_ptr() as usize, bytes, BYTE, peer, TAG, WORLD, 0];
        program.barrier()?;
        let start = Instant::now();
        for i in 0..count {
            if program.me == 0 {
                write(&mut send, bytes, i);
                program.call("MPI_Send", &out)?;
            }
            program.call("MPI_Recv", &into)?;
            if program.me == 1 {
                write(&mut send, bytes, i);
                program.call("MPI_Send", &out)?;
            }
        }
        // A lap has a message in each direction, and the two ranks write one after the other.
        program.largest(
            start.elapsed().saturating_sub(writing).as_secs_f64() * 1e6 / count as f64 / 2.0,
        )
    };
    for &bytes in &args.bytes {
        // The first laps make connections and buffers.
        lap(bytes, 4)?;
        let us = lap(bytes, 8)?.max(0.05);
        let time = Duration::from_millis(args.time).as_secs_f64() * 1e6;
        let us = lap(bytes, (time / us / 2.0).clamp(4.0, 1e5) as usize)?;
        if program.me == 0 {
            println!("{us:.4}");
        }
    }
    program.call("MPI_Finalize", &[])
}
