//! The requests of a rank, carried out on its handle of the simulated cluster.

use crate::account::JobAccount;
use crate::compute::ComputeMeter;
use crate::files::{FileTimes, FileWork};
use crate::look_row::LookRow;
use crate::processes::ProcessAccess;
use crate::quiet_turn::{PrepaidWork, QuietWait};
use crate::{payloads, posts, regions};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};
use weft_fabric::{Fabric, FabricExt, Work};
use weft_fabric_sim::Sim;
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim_client::{
    JournalEntry, MOST_ADVANCES, RankSlot, SimRequest, SlotWords, fault_of, fault_word,
};

/// State of a rank after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRequest {
    /// The rank goes on.
    Runs,
    /// The turn of the rank has ended.
    Rests,
    /// The rank has left the simulation.
    Ended,
}

/// A rank, as the simulation serves it.
pub struct RankServer {
    pub sim: Sim,
    processes: Rc<ProcessAccess>,
    /// The file system; `None` if its accesses take no time.
    files: Rc<RefCell<Option<FileTimes>>>,
    /// Accesses to files whose time has not passed yet. The request after them stands.
    file_work: FileWork,
    compute: ComputeMeter,
    /// True once the rank has left.
    pub ended: bool,
    /// The MPI function in which the rank works, as in [`RankSlot::call`].
    call: u64,
    /// Clock at the last note for the account.
    seen: Picoseconds,
    /// Clock at the beginning of the turn.
    turn_start: Picoseconds,
    /// The looks that the rank has made in a row without doing anything else.
    looks: Option<LookRow>,
    /// The wait of the rank, while it rests and has announced its wait.
    wait: Option<QuietWait>,
    /// Work of the rank's next turn that has been charged.
    prepaid: PrepaidWork,
    /// Number of turns of which the rank did not do all the work that had been charged.
    pub wrong_turns: u64,
    /// True if the rank has asked to leave, and operations under way still use its memory.
    leaving: bool,
}

impl RankServer {
    pub fn new(
        sim: Sim,
        processes: Rc<ProcessAccess>,
        files: Rc<RefCell<Option<FileTimes>>>,
        compute: ComputeMeter,
    ) -> RankServer {
        RankServer {
            sim,
            processes,
            files,
            file_work: FileWork::default(),
            compute,
            ended: false,
            call: 0,
            seen: 0,
            turn_start: 0,
            looks: None,
            wait: None,
            prepaid: PrepaidWork::default(),
            wrong_turns: 0,
            leaving: false,
        }
    }

    /// Takes the turn of a rank that rests, if all that has arrived is quiet. Returns false if the rank has to run.
    pub fn take_quiet_turn(&mut self, slot: &RankSlot, account: &mut JobAccount) -> bool {
        let Some(wait) = &mut self.wait else { return false };
        let (rank, clock) = (self.sim.rank(), self.sim.clock());
        let arrival = self.sim.last_arrival();
        let advances = self.processes.pending_advances(rank);
        if !wait.handle(&self.sim, slot, &advances, &mut self.prepaid) {
            self.wait = None;
            return false;
        }
        let call = slot.call.load(Relaxed);
        account.wait(rank, call, clock.saturating_sub(self.seen), clock, arrival);
        (self.seen, self.call) = (clock, call);
        self.note(0, account);
        true
    }

    /// Shows the rank what has arrived while it rested. The rank has to run.
    pub fn resume(&mut self, slot: &RankSlot) {
        self.wait = None;
        payloads::end_showing(&self.sim, slot, &self.prepaid);
        slot.quiet_rounds.store(self.prepaid.take_rounds(), Relaxed);
        self.publish(slot);
    }

    /// Ends a turn, in which the rank must have done all the work that was charged before.
    fn end_prepaid(&mut self) {
        self.wrong_turns += u64::from(!self.prepaid.is_done());
        self.prepaid = PrepaidWork::default();
    }

    /// Returns true if the rank has made a request that could not be carried out yet. It waits for the reply.
    pub fn has_standing_request(&self) -> bool {
        self.leaving || self.file_work != FileWork::default()
    }

    /// Fills the fields of a slot that every reply has.
    pub fn publish(&self, slot: &RankSlot) {
        let rank = self.sim.rank();
        // The rank may not have seen the news of the reply before.
        let mut count = (slot.advanced.load(Relaxed) as usize).min(MOST_ADVANCES);
        while count < MOST_ADVANCES
            && let Some(word) = self.processes.next_advance(rank)
        {
            slot.advances[count].store(word, Relaxed);
            count += 1;
        }
        slot.advanced.store(count as u32, Relaxed);
        payloads::show_messages(&self.sim, slot);
        let messages = self.sim.arrived_messages() + self.prepaid.messages();
        slot.messages.store(messages as u32, Relaxed);
        slot.quiet.store(self.prepaid.messages() as u32, Relaxed);
        slot.datagrams.store(self.sim.arrived_datagrams() as u32, Relaxed);
        slot.clock.store(self.sim.clock(), Relaxed);
        slot.fault.store(self.sim.fault().as_ref().map_or(0, fault_word), Relaxed);
    }

    /// Begins a turn.
    pub fn begin(&mut self, slot: &RankSlot, account: &mut JobAccount) {
        let clock = self.sim.clock();
        let waited = clock.saturating_sub(self.seen);
        let call = slot.call.load(Relaxed);
        account.wait(self.sim.rank(), call, waited, clock, self.sim.last_arrival());
        self.seen = clock;
        // The reply to a standing request will have the news.
        if !self.has_standing_request() {
            self.resume(slot);
        }
        self.turn_start = clock;
    }

    /// Notes that another rank has had the processor since this rank's last turn.
    pub fn cool(&mut self) {
        self.compute.cool();
    }

    /// Adds the time since the last note to the account. The processor time of the program, and the time of the library, have
    /// been charged already.
    fn note(&mut self, computed: Picoseconds, account: &mut JobAccount) {
        let clock = self.sim.clock();
        let (rank, call) = (self.sim.rank(), self.call);
        let inside = (clock - self.seen).saturating_sub(computed);
        account.busy(rank, call, computed, inside, clock);
        self.seen = clock;
    }

    /// Carries out the entries of the journal.
    fn carry_out_journal(&mut self, slot: &RankSlot, account: &mut JobAccount) {
        let mut computed = 0;
        for entry in slot.journal.take() {
            match entry {
                JournalEntry::Work(work) if self.prepaid.covers(work) => {}
                JournalEntry::Work(work) => self.sim.charge(work),
                JournalEntry::Request(SimRequest::Take) if self.prepaid.take_message() => {}
                JournalEntry::Computed(nanos) => {
                    let time = self.compute.pass(nanos);
                    computed += self.pass(time);
                }
                JournalEntry::Slept(nanos) => computed += self.pass(nanos.saturating_mul(1000)),
                JournalEntry::Call(call) => {
                    self.enter_call(call, std::mem::take(&mut computed), account);
                }
                JournalEntry::Request(request) => {
                    self.looks = None;
                    let reply = self.carry_out(slot, &request, account);
                    if let Some(fault) = reply.and_then(|mut reply| fault_of(reply.take())) {
                        self.sim.refuse(fault);
                    }
                    self.note(std::mem::take(&mut computed), account);
                }
            }
        }
        self.enter_call(slot.call.load(Relaxed), computed, account);
        slot.posted.store(0, Relaxed);
    }

    /// Begins the work of an MPI function, which may have begun before.
    fn enter_call(&mut self, call: u64, computed: Picoseconds, account: &mut JobAccount) {
        if self.sim.clock() > self.seen {
            self.note(computed, account);
        }
        self.call = call;
    }

    /// Lets the time of the program's computing pass. Returns it.
    fn pass(&self, time: Picoseconds) -> Picoseconds {
        if time > 0 {
            self.sim.charge(Work::Compute(time));
        }
        time
    }

    /// Carries out the journal and the request in `slot`, and stores the reply.
    pub fn serve(&mut self, slot: &RankSlot, account: &mut JobAccount) -> AfterRequest {
        self.carry_out_journal(slot, account);
        let nanos = slot.compute.swap(0, Relaxed);
        let slept = slot.slept.swap(0, Relaxed).saturating_mul(1000);
        let time = self.compute.pass(nanos).saturating_add(slept);
        let computed = self.pass(time);
        if !self.has_passed_file_work(slot) {
            self.note(computed, account);
            return AfterRequest::Rests;
        }
        let request = SimRequest::of(SlotWords::load(&slot.words, slot.used.load(Relaxed)));
        let Some(request) = request else {
            return self.reply(slot, SlotWords::default().put(u64::MAX));
        };
        if !matches!(request, SimRequest::Look | SimRequest::Clock)
            || self.sim.clock() > self.turn_start
        {
            self.looks = None;
        }
        let (after, words) = self.answer(slot, request, account);
        self.note(computed, account);
        if after != AfterRequest::Runs {
            self.end_prepaid();
        }
        match after {
            AfterRequest::Runs => self.reply(slot, words),
            AfterRequest::Rests if self.leaving => after,
            AfterRequest::Rests => {
                slot.used.store(0, Relaxed);
                after
            }
            AfterRequest::Ended => {
                self.ended = true;
                after
            }
        }
    }

    /// Lets the time of accesses to files pass. Returns false if ranks that are behind may access files before: the request stands until
    /// global time has caught up.
    fn has_passed_file_work(&mut self, slot: &RankSlot) -> bool {
        self.file_work.accesses += slot.file_accesses.swap(0, Relaxed);
        self.file_work.bytes += slot.file_bytes.swap(0, Relaxed);
        let mut files = self.files.borrow_mut();
        if let Some(files) = &mut *files
            && self.file_work != FileWork::default()
        {
            let mut context = Context::from_waker(Waker::noop());
            if weft_fabric::Simulated::poll_clock(&self.sim, &mut context).is_pending() {
                return false;
            }
            let clock = self.sim.clock();
            let end = files.access(self.sim.rank(), clock, self.file_work);
            self.sim.charge(Work::Compute(end - clock));
        }
        self.file_work = FileWork::default();
        true
    }

    fn reply(&self, slot: &RankSlot, words: SlotWords) -> AfterRequest {
        let used = words.store(&slot.words);
        slot.used.store(used, Relaxed);
        self.publish(slot);
        AfterRequest::Runs
    }

    /// Carries out a request. Returns the state of the rank, and the reply.
    fn answer(
        &mut self,
        slot: &RankSlot,
        request: SimRequest,
        account: &mut JobAccount,
    ) -> (AfterRequest, SlotWords) {
        let after = match request {
            SimRequest::Rest { until } => self.rest(slot, until),
            SimRequest::Look => self.look(),
            SimRequest::End => self.leave(),
            _ => AfterRequest::Runs,
        };
        if after != AfterRequest::Runs {
            return (after, SlotWords::default());
        }
        (after, self.carry_out(slot, &request, account).unwrap_or_default())
    }

    /// Carries out a request that does not concern the turn. Returns the reply; `None` for other requests.
    fn carry_out(
        &self,
        slot: &RankSlot,
        request: &SimRequest,
        account: &mut JobAccount,
    ) -> Option<SlotWords> {
        posts::count(account, self.sim.rank(), request);
        posts::answer(&self.sim, request)
            .or_else(|| payloads::answer(&self.sim, slot, request))
            .or_else(|| regions::answer(&self.sim, request))
    }

    /// Ends the turn until `until`, or until an event.
    fn rest(&mut self, slot: &RankSlot, until: Option<Picoseconds>) -> AfterRequest {
        // Counters that did not fit into the last reply may end the wait.
        let now = self.processes.has_advances(self.sim.rank()).then_some(0);
        if let Some(at) = now.or(until) {
            self.sim.wake_at(at);
        }
        let wait = slot.wait.take().filter(|_| now.or(until).is_none() && slot.inbox.is_done());
        if wait.is_some() {
            slot.inbox.clear();
        }
        self.wait = wait.map(QuietWait::new);
        AfterRequest::Rests
    }

    /// Lets global time catch up, and time pass if the rank looks again.
    fn look(&mut self) -> AfterRequest {
        let mut clock = self.sim.clock();
        if clock == self.turn_start {
            let row = self.looks.get_or_insert_with(|| LookRow::new(clock));
            clock = row.next(clock, self.sim.look_time());
        }
        self.sim.wake_at(clock);
        AfterRequest::Rests
    }

    /// Ends the rank, unless operations under way read or write the memory of its process, which may end now.
    fn leave(&mut self) -> AfterRequest {
        self.leaving = self.sim.uses_memory();
        if !self.leaving {
            return AfterRequest::Ended;
        }
        self.sim.wake_at(self.sim.clock() + Self::LEAVING);
        AfterRequest::Rests
    }

    /// Time in picoseconds after which a rank that leaves looks again for operations that use its memory.
    const LEAVING: Picoseconds = 1_000_000;
}
