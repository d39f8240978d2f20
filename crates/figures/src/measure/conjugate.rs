//! A system of equations, solved by conjugate gradients (Hestenes and Stiefel 1952): an application that waits for two allreduces
//! of one double in each iteration.
//!
//! ```text
//!   unknowns on a square grid, rows in order of ranks; the equations are Poisson's, five points each
//!   iteration   rows at the edges to both neighbours ── q = A p ── allreduce p.q
//!               x += alpha p, r -= alpha q           ── allreduce r.r ── p = r + beta p
//! ```
//! The numbers are real. The solver ends when the residual is small enough, and then checks its solution in the equations.
//! Arithmetic also takes virtual time.

use super::collectives::{NumberSum, named, served, world};
use super::{Measured, SimRank, mean, text};
use std::ops::Range;
use std::rc::Rc;
use weft_collective::{CollectiveKind, ElementReduction, rank};
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::{Fabric, Region, Sge};
use weft_fabric_sim::units::MICROSECOND;
use weft_fabric_sim::{Machine, SimOptions};
use weft_p2p::SendMode;
use weft_process::{Buffer, Destination, Origin};

/// Number of unknowns on a side of the grid.
const SIDE: usize = 64;
/// Number of bytes of a double.
const DOUBLE: usize = 8;
/// Maximum residual at the end, divided by the residual at the beginning.
const SMALL: f64 = 1e-6;
/// Maximum number of iterations. A solver that needs more does not converge.
const MOST: usize = 10 * SIDE;

/// Numbers of operations for each point: `PRODUCT` in the product with the matrix, and the next constant in the rest of an
/// iteration.
const PRODUCT: usize = 6;
const REST: usize = 10;

/// Returns the time in microseconds to the solution on `ranks` nodes. The value is the mean over ranks.
pub fn solve(machine: &Rc<Machine>, ranks: usize, name: &'static str) -> Measured {
    let selection = named(CollectiveKind::Allreduce, name)?;
    let outcome = world(machine, SimOptions::new(ranks), |rank| {
        let (selection, machine) = (selection.clone(), machine.clone());
        async move {
            rank.comm.select(selection);
            served(&rank.comm, CollectiveKind::Allreduce, DOUBLE)?;
            let solver = Solver::new(rank, machine)?;
            // The first sum creates the state of the algorithm.
            solver.sum(0.0).await?;
            solver.run().await
        }
    })?;
    mean(&outcome)
}

/// One rank's part of the system.
struct Solver {
    rank: SimRank,
    machine: Rc<Machine>,
    rows: Range<usize>,
    double: Type,
    sum: Rc<dyn ElementReduction>,
    /// Memory for: rows to send to the ranks above and below, rows received from these ranks, the operand of a sum, and its result.
    memory: Region,
}

impl Solver {
    fn new(rank: SimRank, machine: Rc<Machine>) -> Result<Solver, String> {
        let (me, size) = (rank.comm.rank(), rank.comm.size());
        let rows = rank::cut(SIDE, 1, size, me)..rank::cut(SIDE, 1, size, me + 1);
        let memory = rank.sim.allocate((4 * SIDE + 2) * DOUBLE).map_err(text)?;
        let double = Predefined::new().of(Basic::DOUBLE).clone();
        let sum: Rc<dyn ElementReduction> = Rc::new(NumberSum(Basic::DOUBLE));
        Ok(Solver { rank, machine, rows, double, sum, memory })
    }

    async fn run(&self) -> Measured {
        let points = self.rows.len() * SIDE;
        let start = self.rank.sim.clock();
        let mut x = vec![0.0; points];
        let right = vec![1.0; points];
        let (mut r, mut p) = (right.clone(), right.clone());
        let mut rr = self.sum(dot(&r, &r)).await?;
        let enough = rr * SMALL * SMALL;
        let mut iterations = 0;
        while rr > enough {
            iterations += 1;
            if iterations > MOST {
                return Err(format!("no solution after {MOST} iterations"));
            }
            let q = self.product(&p).await?;
            let alpha = rr / self.sum(dot(&p, &q)).await?;
            add(&mut x, alpha, &p);
            add(&mut r, -alpha, &q);
            let before = std::mem::replace(&mut rr, self.sum(dot(&r, &r)).await?);
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + rr / before * *p);
            self.compute(REST).await;
        }
        let took = self.rank.sim.clock() - start;
        let mut left = self.product(&x).await?;
        add(&mut left, -1.0, &right);
        let residual = self.sum(dot(&left, &left)).await?;
        // The solver computes its residual by a recurrence, which differs from the true residual by rounding.
        match residual <= 4.0 * enough {
            true => Ok(took as f64 / MICROSECOND as f64),
            false => Err(format!("a residual of {residual:e} where {enough:e} was asked for")),
        }
    }

    /// Spends the computing time of `operations` operations for each point.
    async fn compute(&self, operations: usize) {
        let all = self.rows.len() * SIDE * operations;
        self.rank.sim.compute(self.machine.host.flops.time(all)).await;
    }

    /// Returns A p: four times each point minus its neighbours.
    async fn product(&self, p: &[f64]) -> Result<Vec<f64>, String> {
        let [above, below] = self.neighbours(p).await?;
        let last = self.rows.len().saturating_sub(1) * SIDE;
        let at = |i: usize| {
            let column = i % SIDE;
            let up = if i < SIDE { above[column] } else { p[i - SIDE] };
            let down = if i >= last { below[column] } else { p[i + SIDE] };
            let left = if column == 0 { 0.0 } else { p[i - 1] };
            let right = if column + 1 == SIDE { 0.0 } else { p[i + 1] };
            4.0 * p[i] - up - down - left - right
        };
        let product = (0..p.len()).map(at).collect();
        self.compute(PRODUCT).await;
        Ok(product)
    }

    /// Returns the adjacent rows of the ranks above and below. At the edges of the grid they are zero.
    async fn neighbours(&self, p: &[f64]) -> Result<[Vec<f64>; 2], String> {
        const TAG: i32 = 1;
        let (comm, me) = (&self.rank.comm, self.rank.comm.rank());
        let others = [me.checked_sub(1), (me + 1 < comm.size()).then_some(me + 1)];
        let row = |i: usize| self.memory.local.part(i * SIDE * DOUBLE, SIDE * DOUBLE);
        let edges = [&p[..SIDE], &p[p.len() - SIDE..]];
        let mut active = Vec::new();
        for (i, other) in others.iter().enumerate() {
            if let Some(other) = *other {
                active.push(comm.irecv(&self.doubles(row(2 + i)), Origin::Rank(other), Some(TAG)));
                write(row(i), edges[i]);
                let (data, to) = (self.doubles(row(i)), Destination::Rank(other));
                active.push(comm.isend(&data, to, TAG, SendMode::Standard));
            }
        }
        for active in active {
            comm.finished(active).await.map_err(text)?;
        }
        let come = |i: usize| match others[i] {
            Some(_) => read(row(2 + i)),
            None => vec![0.0; SIDE],
        };
        Ok([come(0), come(1)])
    }

    /// Returns the sum over all ranks.
    async fn sum(&self, part: f64) -> Result<f64, String> {
        let word = |i: usize| self.memory.local.part((4 * SIDE + i) * DOUBLE, DOUBLE);
        write(word(0), &[part]);
        let (from, to) = (self.doubles(word(0)), self.doubles(word(1)));
        self.rank.comm.allreduce(Some(from), to, self.sum.clone()).await.map_err(text)?;
        Ok(read(word(1))[0])
    }

    fn doubles(&self, memory: Sge) -> Buffer {
        Buffer::over(memory, self.double.clone())
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}

/// Computes `to += factor * from`.
fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

fn write(memory: Sge, numbers: &[f64]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    memory.fill(&bytes);
}

fn read(memory: Sge) -> Vec<f64> {
    let mut bytes = vec![0; memory.len()];
    memory.read(&mut bytes);
    let number = |word: &[u8]| f64::from_ne_bytes(word.try_into().expect("8 bytes"));
    bytes.chunks_exact(DOUBLE).map(number).collect()
}
