//! Ownership: everything that a run owns is dropped with it.

use std::rc::Rc;
use weft_fabric::{Fabric, until};
use weft_fabric_sim::{Machine, SimOptions, run};

#[test]
fn what_threads_and_handlers_own_is_dropped_with_the_run() {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    for deadlock in [false, true] {
        let owned = Rc::new(());
        let outcome = run(&machine, SimOptions::new(2), |sim| {
            let (a, b, thread) = (owned.clone(), owned.clone(), sim.clone());
            sim.on_signal(move || drop(a.clone()));
            async move {
                let region = sim.allocate(64).unwrap();
                let never = sim.counters().allocate();
                thread.clone().spawn(1, async move {
                    let _owned = b;
                    until(&thread, never, 1).await.unwrap();
                    thread.withdraw(region);
                });
                if deadlock {
                    until(&sim, never, 1).await.unwrap();
                }
            }
        });
        assert_eq!(outcome.is_err(), deadlock);
        drop(outcome);
        assert_eq!(Rc::strong_count(&owned), 1);
    }
}
