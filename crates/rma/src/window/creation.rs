//! Creation and end of a window (MPI 5.0, sections 12.2.1 to 12.2.5).

use super::Window;
use crate::access::WindowAccess;
use crate::control::layout::RAILS;
use crate::control::{OwnWords, WindowControl};
use crate::core::exchange::gather;
use crate::core::{WindowCore, WindowFlavor};
use crate::epochs::Epochs;
use crate::locks::Locks;
use crate::memory::WindowMemory;
use crate::memory::allocation::{self, OwnMemory, WindowOffer};
use crate::memory::exposed::{self, ExposedWindow};
use crate::options::WindowOptions;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use weft_fabric::Fabric;
use weft_process::{Comm, Error, Executor, class};

impl<F: Fabric> Window<F> {
    /// Makes a window of the ranks of `comm`, all of which must call this function. `unit`: this rank's displacement unit, in
    /// bytes. Cost: one broadcast for the communicator, an allgather of 96 bytes per rank, and an allgather of 8 bytes per rank if
    /// the program owns the memory.
    pub async fn create(
        comm: &Comm<F>,
        brings: WindowOffer,
        unit: usize,
        options: WindowOptions,
    ) -> Result<Rc<Window<F>>, Error> {
        let core = Rc::new(WindowCore::new(comm.dup().await?, brings.flavor(), options));
        let (fabric, size) = (core.fabric(), core.size());
        let rails = (0..size).map(|rank| fabric.capabilities(core.peer(rank)).rails);
        let rails = rails.max().unwrap_or(1).clamp(1, RAILS);
        // If a rank fails, the call fails on all ranks. All ranks learn of the failure by the same exchange.
        let made = match OwnMemory::new(core.comm(), &brings).await {
            Ok(own) => match OwnWords::new(&core, rails) {
                Ok(words) => Ok((own, words)),
                Err(fault) => {
                    own.give_back(fabric);
                    Err(fault.into())
                }
            },
            Err(error) => Err(error),
        };
        let immediate = core.comm().engine().new_immediates(2);
        let words = match &made {
            Ok((own, words)) => ExposedWindow {
                memory: own.at,
                control: words.at(),
                len: own.memory.len() as u64,
                unit: unit as u64,
                holder: own.holder.unwrap_or(core.rank()) as u64,
                immediate,
                within: own.within,
                rails,
                // The target decides, so that all origins of the target make the same choice.
                adapters: core.flavor == WindowFlavor::Allocate
                    && !core.one_node
                    && options.atomics.by_adapters(own.memory.len()),
            }
            .encode(),
            Err(error) => exposed::nothing(brings.len(), error.class()),
        };
        let told = match gather(core.comm(), words).await {
            Ok(told) => told,
            Err(error) => {
                if let Ok((own, _)) = made {
                    own.give_back(fabric);
                }
                return Err(error);
            }
        };
        let all: Option<Vec<ExposedWindow>> =
            told.iter().map(|&words| ExposedWindow::decode(words, size)).collect();
        let (own, words) = made?;
        let Some(all) = all else {
            own.give_back(fabric);
            return Err(failed_elsewhere(&told, core.rank()));
        };
        let window = Rc::new(Window::of(core, own, words, all));
        window.begin_service().await?;
        Ok(window)
    }

    /// Makes the parts in order. Each part uses the parts below it.
    fn of(
        core: Rc<WindowCore<F>>,
        own: OwnMemory,
        words: OwnWords<F>,
        all: Vec<ExposedWindow>,
    ) -> Window<F> {
        let remote = all.iter().map(|exposed| (exposed.control, exposed.rails));
        let control = Rc::new(WindowControl::new(core.clone(), words, remote));
        let memory =
            Rc::new(WindowMemory::new(core.clone(), control.clone(), own, all.into_iter()));
        let locks = Rc::new(Locks::new(core.clone(), control.clone()));
        let access =
            WindowAccess::new(core.clone(), control.clone(), memory.clone(), locks.clone());
        let access = Rc::new(access);
        let epochs = Epochs::new(core.clone(), control.clone(), memory.clone(), access.clone());
        Window { core, control, memory, locks, access, epochs, service: RefCell::new(None) }
    }

    /// Starts the service of all ranks, if some rank can be reached only by its own process.
    async fn begin_service(&self) -> Result<(), Error> {
        let engine = self.comm().engine();
        if !self.core.one_node {
            // Connections are made when they are first needed. Both ends must act then, and the helper acts while this process
            // computes.
            engine.want_helper();
        }
        // In a window over several nodes, every rank has a peer on another node, so `by_progress` is the same on all ranks.
        if !self.core.by_progress && !self.some_need_service().await? {
            return Ok(());
        }
        let access = self.access.clone();
        let task = engine.spawn_by(Executor::Anybody, async move { access.serve().await });
        *self.service.borrow_mut() = Some(task);
        engine.want_helper();
        Ok(())
    }

    async fn some_need_service(&self) -> Result<bool, Error> {
        // In these windows all ranks are reachable, and all ranks know this without an exchange.
        if matches!(self.flavor(), WindowFlavor::Allocate | WindowFlavor::Shared) {
            return Ok(false);
        }
        let needs = (0..self.size()).any(|rank| self.memory.needs_service(rank));
        let all = gather(self.comm(), [u64::from(needs)]).await?;
        Ok(all.iter().any(|&[needs]| needs != 0))
    }

    /// Checks that no epoch is open. Error: RMA_SYNC.
    pub fn may_free(&self) -> Result<(), Error> {
        self.core.allow(self.core.epochs.free())
    }

    /// Ends the window, once all ranks call this function. Errors: RMA_SYNC while an epoch is open.
    pub async fn free(&self) -> Result<(), Error> {
        self.may_free()?;
        self.comm().barrier().await?;
        let service = self.service.borrow_mut().take();
        if let Some(task) = service {
            self.control.stop_serving().await?;
            let over =
                |_: &mut Context<'_>| if task.is_over() { Poll::Ready(()) } else { Poll::Pending };
            std::future::poll_fn(over).await;
            task.result().unwrap_or(Ok(()))?;
        }
        self.comm().close().await?;
        self.memory.withdraw();
        self.access.in_flight().withdraw();
        Ok(())
    }
}

/// Returns this rank's error after another rank has failed to make its part.
fn failed_elsewhere(told: &[[u64; exposed::WORDS]], me: usize) -> Error {
    let failed =
        |words: &[u64; exposed::WORDS]| ExposedWindow::decode(*words, told.len()).is_none();
    let rank = told.iter().position(failed).unwrap_or(me);
    let [len, class, ..] = told[rank];
    if class == class::RMA_SHARED as u64 {
        return allocation::not_shared(rank);
    }
    let text = format_args!(
        "rank {rank} could not make its part of the window, {len} bytes; ask for less there, or start fewer \
         processes on its node"
    );
    Error::new(class::NO_MEM, text)
}
