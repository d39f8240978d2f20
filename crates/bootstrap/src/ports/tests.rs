//! Ports between threads of one process.

use super::*;

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
    let port = Port::open(|| {}).unwrap();
    let name = port.name().to_owned();
    let caller = thread::spawn(move || {
        let mut caller = Caller::call(&name, 3).unwrap();
        caller.invitation(PATIENCE).unwrap()
    });
    let calling = wait_for(&port);
    assert_eq!(calling.size, 3);
    let invitation = port.admit(calling, 2, 77, PATIENCE).unwrap();
    assert_eq!(caller.join().unwrap(), invitation);
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
    let port = Port::open(|| {}).unwrap();
    let name = port.name().to_owned();
    let caller =
        thread::spawn(move || Caller::call(&name, 1).unwrap().invitation(PATIENCE).unwrap());
    let invitation = port.admit(wait_for(&port), 1, 0, PATIENCE).unwrap();
    caller.join().unwrap();
    let first = Member::join(&invitation, 0, PATIENCE).unwrap();
    drop(Member::join(&invitation, 1, PATIENCE).unwrap());
    assert!(first.exchange(b"alone").is_err());
}

#[test]
fn who_does_not_know_the_secret_is_sent_away() {
    let port = Port::open(|| {}).unwrap();
    let right = Address::decode(port.name()).unwrap();
    let wrong = Address { secret: right.secret ^ 1, ..right.clone() }.encode();
    let mut caller = Caller::call(&wrong, 1).unwrap();
    assert!(caller.invitation(PATIENCE).is_err());
    let mut stranger = connect(&right.socket().unwrap()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n0123456789").unwrap();
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty() && port.next().is_none());
    // Somebody who says nothing holds nobody up.
    let _silent = connect(&right.socket().unwrap()).unwrap();
    let _waiting = Caller::call(port.name(), 1).unwrap();
    assert_eq!(wait_for(&port).size, 1);
}

#[test]
fn a_call_that_nobody_accepts_ends_and_a_closed_port_refuses() {
    let port = Port::open(|| {}).unwrap();
    let name = port.name().to_owned();
    let mut caller = Caller::call(&name, 1).unwrap();
    let error = caller.invitation(Duration::from_millis(100)).unwrap_err();
    assert!(error.to_string().contains("nobody accepted"), "{error}");
    let mut caller = Caller::call(&name, 1).unwrap();
    wait_for(&port);
    wait_for(&port);
    drop(port);
    assert!(caller.invitation(PATIENCE).unwrap_err().to_string().contains("closed"));
    // Its thread ends, and nobody listens.
    let refused = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        Caller::call(&name, 1).is_err()
    });
    assert!(refused);
}

#[test]
fn names_come_back_and_others_are_refused() {
    let address = Address { machine: machine(), socket: 5, secret: u128::MAX };
    assert_eq!(Address::decode(&address.encode()), Some(address.clone()));
    assert!(address.encode().len() < 1024);
    for wrong in ["", "weft-port-1", "weft-port-1:a:1:2", "weft-port-2:a:0:0", "host:80"] {
        assert!(!is_port(wrong), "{wrong}");
        assert!(Caller::call(wrong, 1).is_err());
    }
    let elsewhere = Address { machine: "0.0".into(), ..address }.encode();
    assert!(Caller::call(&elsewhere, 1).err().unwrap().to_string().contains("machine"));
    let invitation =
        Invitation { port: elsewhere, session: 1, accepting: 2, all: 3, word: u64::MAX };
    assert_eq!(Invitation::decode(&invitation.encode()), Some(invitation));
    assert_eq!(Invitation::decode("1,3,3,0,x"), None);
}
