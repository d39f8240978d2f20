//! Choice of provider and interface: the offers of this machine, in the order in which they are tried.

use crate::OfiConnectError;
use crate::ffi::*;
use crate::library::OfiLibrary;
use crate::options::OfiOptions;
use crate::provider_facts::BUILT_IN;
use crate::tcp::{Interface, interfaces};
use std::ffi::{CStr, CString, c_char};
use std::net::IpAddr;
use std::ptr;

/// Providers that are tried unless the user names a provider, best first: providers of special networks, then TCP, which every
/// machine has. The built-in TCP comes before libfabric's `tcp`, because `tcp` below ofi_rxm makes one more copy at each end and
/// takes 93 MB per process. `net` of libfabric 1.16 and 1.17 became `tcp` in 1.18 (`descriptor.rs`). `net` needs no layer above it
/// and is faster, but it is used only if the user names it: if hundreds of ranks connect to each other at once, `net` loses first
/// messages.
pub const PROVIDERS: [&str; 7] = ["cxi", "efa", "opx", "psm2", "verbs;ofi_rxm", BUILT_IN, "tcp"];

/// Prefixes of interfaces that lead to no other host: bridges, and ends of cables to containers and virtual machines.
const VIRTUAL: [&str; 8] = ["docker", "br-", "virbr", "veth", "cni", "flannel", "tailscale", "wg"];

/// The loopback interface.
const LOOPBACK: &str = "lo";

/// Requested capabilities: messages and remote memory access, in both directions.
const CAPS: u64 =
    FI_MSG | FI_RMA | FI_READ | FI_WRITE | FI_RECV | FI_TRANSMIT | FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Registration modes that this crate supports.
pub const MR_MODES: i32 =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

/// A list that the library has made.
pub struct Infos {
    library: OfiLibrary,
    first: *mut fi_info,
}

impl Infos {
    /// Asks the library for a list of offers. Returns `None` if the library offers nothing.
    ///
    /// # Safety
    /// `hints` is null or complete.
    unsafe fn get(library: OfiLibrary, hints: *const fi_info) -> Option<Infos> {
        let mut first = ptr::null_mut();
        // SAFETY: `fi_getinfo` accepts null for node, service and hints; other hints are complete (contract of this function). It
        // writes a list to `first`, which `Infos` frees.
        let error =
            unsafe { (library.getinfo)(API, ptr::null(), ptr::null(), 0, hints, &mut first) };
        (error == 0 && !first.is_null()).then(|| Infos { library, first })
    }

    /// Returns the offers of the list.
    fn offers(&self) -> impl Iterator<Item = NetworkOffer> {
        // SAFETY: `at` is an element of the list that `self` keeps alive.
        let next = |&at: &*mut fi_info| Some(unsafe { (*at).next }).filter(|at| !at.is_null());
        // SAFETY: `at` is an element of the list that `self` keeps alive, and libfabric fills its attributes.
        std::iter::successors(Some(self.first), next).map(|at| unsafe { NetworkOffer::of(at) })
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: `fi_freeinfo` needs a list that the library made and that is freed once. `Infos` owns the list.
        unsafe { (self.library.freeinfo)(self.first) };
    }
}

/// One combination of provider and interface.
pub struct NetworkOffer {
    /// Provider, as libfabric names it.
    pub provider: String,
    /// Interface or adapter.
    pub domain: String,
    /// Name of the network. Processes whose networks have the same name reach each other without a router.
    pub network: String,
    pub how: ProviderSource,
}

/// Source of a provider.
pub enum ProviderSource {
    /// libfabric, by this element of its list.
    Library(*mut fi_info),
    /// This crate, on this interface.
    BuiltIn(Interface),
}

/// The offers of this machine.
pub struct Offers {
    /// The library, or `None` if it is missing or not needed.
    pub library: Option<OfiLibrary>,
    pub list: Vec<NetworkOffer>,
    /// Owner of the lists that [`ProviderSource::Library`] points to.
    _infos: Option<Infos>,
}

/// Returns a text of the library, or an empty text for null.
fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: `from` is not null (checked above), and libfabric's texts end with a zero byte and live as long as their list.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// Returns true if `name` is the provider `wanted`, with or without a layer above it.
fn is(name: &str, wanted: &str) -> bool {
    name == wanted || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(';'))
}

fn place(provider: &str) -> Option<usize> {
    PROVIDERS.iter().position(|known| is(provider, known))
}

impl NetworkOffer {
    /// # Safety
    /// `info` belongs to a live list that the library gave.
    unsafe fn of(info: *mut fi_info) -> NetworkOffer {
        // SAFETY: `info` belongs to a live list (the caller promises it), and libfabric fills the attributes of each element.
        let (fabric, domain) = unsafe { (&*(*info).fabric_attr, &*(*info).domain_attr) };
        NetworkOffer {
            provider: text(fabric.prov_name),
            domain: text(domain.name),
            network: text(fabric.name),
            how: ProviderSource::Library(info),
        }
    }

    /// Returns true if the offer leads to other hosts, judging by the name of its interface.
    pub fn leads_out(&self) -> bool {
        let within =
            self.domain == LOOPBACK || VIRTUAL.iter().any(|prefix| self.domain.starts_with(prefix));
        !within && !self.network.starts_with("fe80:")
    }

    /// Returns true if this process chooses the keys of memory. Then memory can have the same key on several rails.
    pub fn keys_are_free(&self) -> bool {
        let ProviderSource::Library(info) = self.how else { return true };
        // SAFETY: the element belongs to a list that `Offers` keeps alive, and libfabric fills the attributes of each element.
        let modes = unsafe { (*(*info).domain_attr).mr_mode };
        modes & FI_MR_PROV_KEY == 0
    }

    /// Returns true if the offer leads only to this host, which is enough for a job on one host.
    pub fn is_loopback(&self) -> bool {
        self.domain == LOOPBACK && self.network.starts_with("127.")
    }

    /// Returns the address of the interface, if it has one.
    pub fn address(&self) -> Option<IpAddr> {
        if let ProviderSource::BuiltIn(interface) = &self.how {
            return Some(interface.address);
        }
        let is_it = |one: &Interface| one.name == self.domain && one.network == self.network;
        interfaces().into_iter().find(is_it).map(|one| one.address)
    }

    pub fn name(&self) -> String {
        format!("{} {} ({})", self.provider, self.domain, self.network)
    }
}

/// Asks the library for offers. Messages must keep the orders in `order`.
fn ask(library: OfiLibrary, provider: Option<&str>, order: u64) -> Option<Infos> {
    // SAFETY: `fi_dupinfo` accepts null. It returns an empty list element with all attributes, or null.
    let hints = unsafe { (library.dupinfo)(ptr::null()) };
    if hints.is_null() {
        return None;
    }
    let hints = Infos { library, first: hints };
    // SAFETY: the element and its attributes were just made by `fi_dupinfo`, are not null, and nobody else has them.
    unsafe {
        let info = &mut *hints.first;
        info.caps = CAPS;
        info.mode = FI_CONTEXT | FI_CONTEXT2;
        (*info.ep_attr).kind = FI_EP_RDM;
        (*info.tx_attr).msg_order = order;
        (*info.rx_attr).msg_order = order;
        let domain = &mut *info.domain_attr;
        (domain.mr_mode, domain.threading) = (MR_MODES, FI_THREAD_SAFE);
        (domain.resource_mgmt, domain.av_type) = (FI_RM_ENABLED, FI_AV_TABLE);
        if let Some(name) = provider.and_then(|name| CString::new(name).ok()) {
            // The library frees this string with the other parts of the element.
            (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
        }
    }
    // SAFETY: the hints are complete.
    unsafe { Infos::get(library, hints.first) }
}

/// Folders in which the kernel lists adapters that only the library supports.
const ADAPTERS: [&str; 2] = ["/sys/class/infiniband", "/sys/class/cxi"];

/// Returns true if the library must be asked for offers: the user names the library, or the machine has an adapter that needs it.
/// Otherwise the library is not asked, since its answer takes 0.2 s.
fn asks_library(options: &OfiOptions) -> bool {
    let has_any =
        |folder: &&str| std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
    match options.provider.as_deref() {
        Some(name) => name != BUILT_IN,
        None => options.library.is_some() || ADAPTERS.iter().any(has_any),
    }
}

/// Returns the offers of the built-in TCP: one for each interface with an address.
fn built_in() -> Vec<NetworkOffer> {
    let offer = |interface: Interface| NetworkOffer {
        provider: BUILT_IN.to_owned(),
        domain: interface.name.clone(),
        network: interface.network.clone(),
        how: ProviderSource::BuiltIn(interface),
    };
    interfaces().into_iter().map(offer).collect()
}

/// Returns the offers of the library that match the options.
fn of_library(
    library: OfiLibrary,
    options: &OfiOptions,
) -> Result<(Infos, Vec<NetworkOffer>), OfiConnectError> {
    let wanted = || match &options.provider {
        Some(name) => format!("provider {name} with reliable datagrams and remote memory access"),
        None => "reliable datagrams with remote memory access".to_owned(),
    };
    let provider = options.provider.as_deref();
    let infos = ask(library, provider, FI_ORDER_SAS | FI_ORDER_SAW)
        .or_else(|| ask(library, provider, FI_ORDER_SAS))
        .ok_or_else(|| OfiConnectError::NoOffer { wanted: wanted(), found: everything(library) })?;
    let mut list: Vec<NetworkOffer> = Vec::new();
    for offer in infos.offers() {
        let known = list.iter().any(|one| one.name() == offer.name());
        let fits = match provider {
            Some(wanted) => is(&offer.provider, wanted),
            None => place(&offer.provider).is_some(),
        };
        if fits && !known {
            list.push(offer);
        }
    }
    match list.is_empty() {
        true => Err(OfiConnectError::NoOffer { wanted: wanted(), found: everything(library) }),
        false => Ok((infos, list)),
    }
}

/// Returns all offers that match the options, in the order of preference.
pub fn offers(options: &OfiOptions) -> Result<Offers, OfiConnectError> {
    let mut list = match options.provider.as_deref() {
        None | Some(BUILT_IN) => built_in(),
        Some(_) => Vec::new(),
    };
    let (mut library, mut infos) = (None, None);
    if asks_library(options) {
        let asked = OfiLibrary::load(options.library.as_deref())
            .and_then(|found| Ok((found, of_library(found, options)?)));
        match asked {
            Ok((found, (kept, offered))) => {
                (library, infos) = (Some(found), Some(kept));
                list.extend(offered);
            }
            // The user has not asked for the library, and there is another offer.
            Err(_) if !list.is_empty() && options.library.is_none() => {}
            Err(error) => return Err(error),
        }
    }
    let domains = &options.interfaces;
    if !domains.is_empty() {
        let found: Vec<String> = list.iter().map(NetworkOffer::name).collect();
        list.retain(|offer| domains.contains(&offer.domain));
        if list.is_empty() {
            let wanted = format!("interface {}", domains.join(" or "));
            return Err(OfiConnectError::NoOffer { wanted, found });
        }
    }
    let rank = |offer: &NetworkOffer| {
        let named = domains.iter().position(|domain| *domain == offer.domain);
        let number = nix::net::if_::if_nametoindex(&*offer.domain).unwrap_or(u32::MAX);
        let newer = offer.network.contains(':');
        (named, place(&offer.provider), !offer.leads_out(), newer, number)
    };
    list.sort_by_key(rank);
    if list.is_empty() {
        let wanted = "interface with an address of IP".to_owned();
        return Err(OfiConnectError::NoOffer { wanted, found: Vec::new() });
    }
    Ok(Offers { library, list, _infos: infos })
}

/// Returns the offers of this machine, best first, as lines for the user. Errors: no library, or no offer that fits.
pub fn survey(options: &OfiOptions) -> Result<Vec<String>, OfiConnectError> {
    let Offers { library, list, .. } = offers(options)?;
    let line = |offer: &NetworkOffer| {
        let within = if offer.leads_out() { "" } else { "; leads to no other host" };
        format!("{}{within}", offer.name())
    };
    let version = library.map(|library| format!("libfabric {}", library.version()));
    Ok(version.into_iter().chain(list.iter().map(line)).collect())
}

/// Returns the names of all providers of the library, including providers that do not fit the options.
fn everything(library: OfiLibrary) -> Vec<String> {
    // SAFETY: null hints are allowed.
    let infos = unsafe { Infos::get(library, ptr::null()) };
    let mut names: Vec<String> =
        infos.iter().flat_map(Infos::offers).map(|offer| offer.provider).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(provider: &str, domain: &str, network: &str) -> NetworkOffer {
        let [provider, domain, network] = [provider, domain, network].map(str::to_owned);
        NetworkOffer { provider, domain, network, how: ProviderSource::Library(ptr::null_mut()) }
    }

    #[test]
    fn a_provider_is_known_below_a_layer() {
        assert!(is("tcp", "tcp") && is("tcp;ofi_rxm", "tcp") && !is("tcpx", "tcp"));
        assert!(!is("verbs", "verbs;ofi_rxm"));
        assert_eq!(place("tcp;ofi_rxm"), Some(PROVIDERS.len() - 1));
        assert_eq!(place("shm"), None);
    }

    #[test]
    fn interfaces_within_a_host_lead_nowhere() {
        for name in ["lo", "docker0", "br-12ab", "veth9", "virbr0"] {
            assert!(!offer("tcp", name, "10.0.0.0/8").leads_out(), "{name}");
        }
        assert!(offer("tcp", "eth0", "10.0.0.0/8").leads_out());
        assert!(!offer("tcp", "eth0", "fe80::/64").leads_out(), "of one cable only");
        assert!(offer("tcp", "lo", "127.0.0.1/32").is_loopback());
    }
}
