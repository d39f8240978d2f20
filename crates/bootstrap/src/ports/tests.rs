//! Ports between threads of one process.

use super::address::PortPlace;
use super::*;
use std::io::{Read, Write};

const PATIENCE: Duration = Duration::from_secs(20);

fn wait_for(port: &Port) -> Calling {
    for _ in 0..2000 {
        if let Some(calling) = port.next() {
            return calling;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody called");
}

#[test]
fn all_hear_what_all_say() {
    for at in [None, Some("127.0.0.1".parse().unwrap()), Some("::1".parse().unwrap())] {
        all_hear_at(at);
    }
}

fn all_hear_at(at: Option<IpAddr>) {
    let port = Port::open(at, || {}).unwrap();
    assert_eq!(is_on_network(port.name()), at.is_some());
    let name = port.name().to_owned();
    let caller = thread::spawn(move || {
        let mut caller = Caller::call(&name, 3).unwrap();
        (caller.invitation(PATIENCE).unwrap(), caller)
    });
    let calling = wait_for(&port);
    assert_eq!(calling.size, 3);
    let invitation =
        port.admit(calling, AcceptingGroup { root: 1, size: 2 }, 77, PATIENCE).unwrap();
    let (found, _line) = caller.join().unwrap();
    assert_eq!(found, invitation);
    assert_eq!((invitation.accepting, invitation.all, invitation.word), (2, 5, 77));
    drop(port);
    let members = (0..5).map(|place| {
        let invitation = invitation.clone();
        thread::spawn(move || {
            let member = Member::join(&invitation, place, PATIENCE).unwrap();
            for round in 0..3 {
                let said = member.exchange(&vec![place as u8; 1000 * round * place]).unwrap();
                let right = |at: usize| said[at] == vec![at as u8; 1000 * round * at];
                assert!(said.len() == 5 && (0..5).all(right), "round {round}");
            }
        })
    });
    let members: Vec<_> = members.collect();
    members.into_iter().for_each(|member| member.join().unwrap());
}

#[test]
fn a_member_that_leaves_ends_the_session_for_all() {
    let port = Port::open(None, || {}).unwrap();
    let name = port.name().to_owned();
    let caller = thread::spawn(move || invited(&name));
    let invitation =
        port.admit(wait_for(&port), AcceptingGroup { root: 0, size: 1 }, 0, PATIENCE).unwrap();
    let _line = caller.join().unwrap();
    let first = Member::join(&invitation, 0, PATIENCE).unwrap();
    drop(Member::join(&invitation, 1, PATIENCE).unwrap());
    assert!(first.exchange(b"alone").is_err());
}

/// Makes a call that is accepted.
fn invited(name: &str) -> Caller {
    let mut caller = Caller::call(name, 1).unwrap();
    caller.invitation(PATIENCE).unwrap();
    caller
}

#[test]
fn nobody_waits_for_a_job_that_has_ended() {
    const FOR_EVER: Duration = Duration::from_secs(3600);
    for joined in [false, true] {
        let port = Port::open(None, || {}).unwrap();
        let name = port.name().to_owned();
        let caller = thread::spawn(move || invited(&name));
        let invitation =
            port.admit(wait_for(&port), AcceptingGroup { root: 0, size: 1 }, 0, FOR_EVER).unwrap();
        let line = caller.join().unwrap();
        let first = Member::join(&invitation, 0, FOR_EVER).unwrap();
        let first = thread::spawn(move || first.exchange(b"alone").unwrap_err());
        // For a larger job, one member may already have come.
        let second =
            joined.then(|| Member::join(&Invitation { all: 3, ..invitation }, 0, PATIENCE));
        drop((line, second));
        assert!(first.join().unwrap().to_string().contains("has ended"));
    }
}

#[test]
fn who_does_not_know_the_secret_is_sent_away() {
    for at in [None, Some("127.0.0.1".parse().unwrap())] {
        let port = Port::open(at, || {}).unwrap();
        let right = Address::decode(port.name()).unwrap();
        let wrong = Address { secret: right.secret ^ 1, ..right.clone() }.encode();
        assert!(Caller::call(&wrong, 1).is_err());
        let mut stranger = right.connect().unwrap();
        let said = b"GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n01234567890123456789";
        stranger.write_all(said).unwrap();
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.len() <= 16 && port.next().is_none(), "a number, and no more");
        // A connection that sends nothing delays no other connection.
        let _silent = right.connect().unwrap();
        let _waiting = Caller::call(port.name(), 1).unwrap();
        assert_eq!(wait_for(&port).size, 1);
    }
}

#[test]
fn what_was_said_once_is_no_proof_again() {
    // A recorded greeting to a port is not valid at another port with the same secret, because the ports send different numbers.
    let port = Port::open(None, || {}).unwrap();
    let right = Address::decode(port.name()).unwrap();
    let (fake, fake_address) = Listener::open(None).unwrap();
    let name = Address { secret: right.secret, ..fake_address }.encode();
    let caller = thread::spawn(move || Caller::call(&name, 1).map(|_| ()).unwrap_err());
    let heard = loop {
        match fake.accept() {
            Ok(Some(stream)) => break stream,
            _ => thread::sleep(Duration::from_millis(1)),
        }
    };
    (&heard).write_all(&[7; 16]).unwrap();
    let mut said = [0; 56];
    (&heard).read_exact(&mut said).unwrap();
    (&heard).write_all(&[0; 16]).unwrap();
    assert_eq!(caller.join().unwrap().kind(), ErrorKind::ConnectionRefused);
    let mut again = right.connect().unwrap();
    again.write_all(&said).unwrap();
    let mut answer = Vec::new();
    let _ = again.read_to_end(&mut answer);
    assert!(answer.len() <= 16 && port.next().is_none());
}

/// Counts the threads of this process with a name.
fn threads(name: &str) -> usize {
    let all = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    all.filter(named).count()
}

#[test]
fn strangers_that_go_on_talking_hold_nobody_up() {
    let try_at = |at: Option<IpAddr>| {
        let port = Port::open(at, || {}).unwrap();
        let right = Address::decode(port.name()).unwrap();
        // There are more connections than the port keeps. It must drop the first connections, not the last.
        let mut slow: Vec<Stream> = (0..UNKNOWN + 8).map(|_| right.connect().unwrap()).collect();
        let mut caller = Caller::call(port.name(), 1).unwrap();
        assert_eq!(threads("weft-greeting"), 0, "no thread a stranger");
        let invitation =
            port.admit(wait_for(&port), AcceptingGroup { root: 0, size: 1 }, 5, PATIENCE).unwrap();
        assert_eq!(caller.invitation(PATIENCE).unwrap(), invitation);
        // A stranger that sends a byte now and then has not sent a greeting. All strangers are dropped, although there are no new
        // connections and no stranger was silent for long.
        let talk = |one: &mut Stream| {
            one.set_nonblocking(true).unwrap();
            let gone = loop {
                match one.read(&mut [0; 64]) {
                    Ok(0) => break true,
                    Ok(_) => {}
                    Err(error) => break error.kind() != ErrorKind::WouldBlock,
                }
            };
            !gone && one.write_all(b"x").is_ok()
        };
        for _ in 0..30 {
            slow.retain_mut(talk);
            thread::sleep(Duration::from_millis(if slow.is_empty() { 0 } else { 500 }));
        }
        assert_eq!(slow.len(), 0, "strangers that are still heard");
    };
    let network = thread::spawn(move || try_at(Some("127.0.0.1".parse().unwrap())));
    try_at(None);
    network.join().unwrap();
}

#[test]
fn a_caller_that_is_pushed_out_tries_again_and_else_says_why() {
    let (door, place) = Listener::open(None).unwrap();
    let secret = place.secret;
    let name = place.encode();
    let caller = thread::spawn(move || Caller::call(&name, 1).map(|_| ()));
    let next = || loop {
        match door.accept() {
            Ok(Some(stream)) => break stream,
            _ => thread::sleep(Duration::from_millis(1)),
        }
    };
    // The port drops the caller once before and once after the challenge. Then it accepts the caller.
    drop(next());
    (&next()).write_all(&[7; 16]).unwrap();
    let heard = next();
    (&heard).write_all(&9u128.to_le_bytes()).unwrap();
    let mut said = [0; 56];
    (&heard).read_exact(&mut said).unwrap();
    let (wish, answer) = greeting::judge(secret, 9, &said).unwrap();
    assert_eq!(wish, Wish::Call(1));
    (&heard).write_all(&answer).unwrap();
    caller.join().unwrap().unwrap();

    let name = place.encode();
    let caller = thread::spawn(move || Caller::call(&name, 1).map(|_| ()).unwrap_err());
    (0..=AGAIN).for_each(|_| drop(next()));
    let error = caller.join().unwrap();
    assert!(error.to_string().contains("has closed the connection"), "{error}");
}

/// A session of `all` members that stay.
fn staying(all: usize) -> Vec<SessionMonitor> {
    let port = Port::open(None, || {}).unwrap();
    let name = port.name().to_owned();
    let caller = thread::spawn(move || invited(&name));
    let invitation = port
        .admit(wait_for(&port), AcceptingGroup { root: 0, size: all - 1 }, 0, PATIENCE)
        .unwrap();
    let _line = caller.join().unwrap();
    let join = |place| Member::join(&invitation, place, PATIENCE).unwrap();
    let members: Vec<_> = (0..all).map(join).collect();
    members.into_iter().map(|member| member.stay(|| {}).unwrap()).collect()
}

fn wait_until(what: impl Fn() -> bool) {
    for _ in 0..2000 {
        if what() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it does not come");
}

#[test]
fn all_hear_when_all_have_left() {
    let monitors = staying(3);
    monitors[0].leave();
    monitors[2].leave();
    thread::sleep(Duration::from_millis(50));
    assert!(monitors.iter().all(|monitor| !monitor.is_over() && monitor.take_lost().is_none()));
    monitors[1].leave();
    wait_until(|| monitors.iter().all(SessionMonitor::is_over));
    assert!(monitors.iter().all(|monitor| monitor.take_lost().is_none()));
}

#[test]
fn who_ends_without_leaving_is_missed() {
    let mut monitors = staying(3);
    monitors[0].leave();
    drop(monitors.remove(1));
    for monitor in &monitors {
        let lost = std::cell::Cell::new(None);
        wait_until(|| {
            lost.set(lost.get().or(monitor.take_lost()));
            lost.get().is_some()
        });
        assert_eq!(lost.get(), Some(1));
        assert!(!monitor.is_over());
    }
    monitors[1].leave();
    wait_until(|| monitors.iter().all(SessionMonitor::is_over));
}

#[test]
fn a_call_that_nobody_accepts_ends_and_a_closed_port_refuses() {
    let port = Port::open(None, || {}).unwrap();
    let name = port.name().to_owned();
    let mut caller = Caller::call(&name, 1).unwrap();
    let error = caller.invitation(Duration::from_millis(100)).unwrap_err();
    assert!(error.to_string().contains("nobody accepted"), "{error}");
    let mut caller = Caller::call(&name, 1).unwrap();
    wait_for(&port);
    wait_for(&port);
    drop(port);
    assert!(caller.invitation(PATIENCE).unwrap_err().to_string().contains("closed"));
    // The port's thread ends, and no socket listens.
    let refused = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        Caller::call(&name, 1).is_err()
    });
    assert!(refused);
}

#[test]
fn names_come_back_and_others_are_refused() {
    let places = [
        PortPlace::Machine(machine(), 5),
        PortPlace::Network("10.0.0.1:70".parse().unwrap()),
        PortPlace::Network("[fd00::1]:70".parse().unwrap()),
    ];
    for place in places {
        let address = Address { place, secret: u128::MAX };
        assert_eq!(Address::decode(&address.encode()), Some(address.clone()));
        assert!(address.encode().len() < 256);
    }
    for wrong in ["", "weft-port-2", "weft-port-2:here:1:a:2", "weft-port-1:a:0:0", "host:80"] {
        assert!(!is_port(wrong), "{wrong}");
        assert!(Caller::call(wrong, 1).is_err());
    }
    let elsewhere = Address { place: PortPlace::Machine("0.0".into(), 5), secret: 1 }.encode();
    assert!(Caller::call(&elsewhere, 1).err().unwrap().to_string().contains("machine"));
    let invitation =
        Invitation { port: elsewhere, session: 1, root: 1, accepting: 2, all: 3, word: u64::MAX };
    assert_eq!(Invitation::decode(&invitation.encode()), Some(invitation));
    assert_eq!(Invitation::decode("1,0,3,3,0,x"), None);
    assert_eq!(Invitation::decode("1,2,2,3,0,x"), None);
}
