//! Tests of connecting under a storm of signals, after which no system call is restarted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weft_bootstrap::threads;
use weft_fabric_shm::{Shm, ShmOptions};

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handle(_signal: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn ranks_connect_though_signals_interrupt_them() {
    // SAFETY: zeros are a valid sigaction with no options, and the handler only counts, which is safe in a signal handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as libc::sighandler_t;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    for _ in 0..20 {
        let (say, told) = std::sync::mpsc::channel();
        let ranks: Vec<_> = threads(4)
            .into_iter()
            .map(|mut world| {
                let say = say.clone();
                std::thread::spawn(move || {
                    // SAFETY: pthread_self takes no arguments.
                    say.send(unsafe { libc::pthread_self() }).unwrap();
                    let options =
                        ShmOptions { patience: Duration::from_secs(60), ..ShmOptions::default() };
                    Shm::connect_with(&mut world, options).map(drop).map_err(|e| e.to_string())
                })
            })
            .collect();
        let names: Vec<_> = (0..4).map(|_| told.recv().unwrap()).collect();
        while ranks.iter().any(|rank| !rank.is_finished()) {
            for &name in &names {
                // SAFETY: the threads have not been joined, so their names are valid.
                unsafe { libc::pthread_kill(name, libc::SIGUSR1) };
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        for rank in ranks {
            assert_eq!(rank.join().unwrap(), Ok(()));
        }
    }
    assert!(HANDLED.load(Ordering::Relaxed) > 0);
}
