//! Names of hosts: with and without domain, and addresses.

use std::net::IpAddr;

use nix::unistd::gethostname;

/// Returns the name without its domain. An address has no domain.
pub fn without_domain(name: &str) -> &str {
    match name.split_once('.') {
        Some((short, _)) if name.parse::<IpAddr>().is_err() => short,
        _ => name,
    }
}

/// Returns true if both names may belong to the same host: the names are equal, or one name is the other name without its domain.
pub fn is_same(a: &str, b: &str) -> bool {
    let is_short = |name: &str| without_domain(name).len() == name.len();
    a.eq_ignore_ascii_case(b)
        || ((is_short(a) || is_short(b))
            && without_domain(a).eq_ignore_ascii_case(without_domain(b)))
}

/// Returns true if an interface of this machine has the address.
fn is_own_address(address: IpAddr) -> bool {
    let mut interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    interfaces.any(|interface| {
        interface.address.as_ref().is_some_and(|own| {
            let four = own.as_sockaddr_in().map(|four| IpAddr::from(four.ip()));
            four.or_else(|| own.as_sockaddr_in6().map(|six| six.ip().into())) == Some(address)
        })
    })
}

/// Returns true if `name` is a name or an address of this machine.
pub fn is_local(name: &str) -> bool {
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || is_own_address(address),
        Err(_) => {
            let own = gethostname().unwrap_or_default();
            name == "localhost" || is_same(name, &own.to_string_lossy())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_with_and_without_domain() {
        for (a, b, same) in [
            ("n1", "n1", true),
            ("N1", "n1", true),
            ("n1", "n1.cluster.org", true),
            ("n1.cluster.org", "n1", true),
            ("n1.a.org", "n1.b.org", false),
            ("n1", "n10", false),
            ("10", "10.0.0.1", false),
            ("10.0.0.1", "10.0.0.2", false),
            ("fd00::1", "fd00::1", true),
        ] {
            assert_eq!(is_same(a, b), same, "{a} {b}");
        }
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        let own = gethostname().unwrap().to_string_lossy().into_owned();
        let short = without_domain(&own);
        let long = format!("{short}.example.org");
        for name in ["localhost", "127.0.0.1", "::1", &own, short] {
            assert!(is_local(name), "{name}");
        }
        // A name with a domain is known if the machine's own name has no domain.
        assert_eq!(is_local(&long), own == short);
        // The last address is for documentation only (RFC 3849).
        for name in ["elsewhere", "192.0.2.1", "2001:db8::1"] {
            assert!(!is_local(name), "{name}");
        }
    }
}
