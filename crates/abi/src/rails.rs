//! Rails of this machine for `weft info`: the networks that connect nodes, or the reason why there is none.

use crate::network;
use std::ffi::{CString, c_char};
use std::sync::OnceLock;
use weft_fabric_verbs::Survey;

/// Returns lines of two fields: a word, and a text for this word. The words are `rail N`, `unused` (a port, with the reason),
/// `unusable` (an adapter, with the reason) and `bounds`, or only `none` (with the reason).
fn lines(survey: Result<Survey, String>) -> Vec<(String, String)> {
    let survey = match survey {
        Ok(survey) => survey,
        Err(why) => return vec![("none".to_owned(), why)],
    };
    let Survey { rails, unused, unusable, bounds } = survey;
    let mut lines = Vec::new();
    lines.extend(rails.iter().enumerate().map(|(i, port)| (format!("rail {i}"), port.to_string())));
    let mut add = |word: &str, text: String| lines.push((word.to_owned(), text));
    for (port, why) in unused {
        // If a port is not usable, the reason already names the port.
        add("unused", if port.is_usable() { format!("{port}; {why}") } else { why });
    }
    unusable.into_iter().for_each(|why| add("unusable", why));
    bounds.into_iter().for_each(|text| add("bounds", text));
    lines
}

/// Returns the rails that `MPI_Init` would use on the first of several nodes, in the form of [`lines`], followed by the networks
/// that libfabric offers here (`ofi`), the best first. The first call opens the adapters.
#[unsafe(no_mangle)]
pub extern "C" fn weft_rails() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    let build = || {
        let look = |options| Survey::look(&options).map_err(|error| error.to_string());
        let survey = network::verbs_of_node(0).and_then(look);
        let clean = |text: &str| text.replace(['\t', '\n', '\0'], " ");
        let line = |(word, text): &(String, String)| format!("{word}\t{}\n", clean(text));
        let ofi = network::ofi_of_node(0).and_then(|options| {
            weft_fabric_ofi::survey(&options).map_err(|error| error.to_string())
        });
        let ofi =
            ofi.unwrap_or_else(|why| vec![why]).into_iter().map(|text| ("ofi".to_owned(), text));
        let text: String = lines(survey).into_iter().chain(ofi).map(|pair| line(&pair)).collect();
        CString::new(text).expect("no NUL in the texts")
    };
    TEXT.get_or_init(build).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_begins_with_what_it_is_about() {
        let survey = Survey {
            rails: Vec::new(),
            unused: Vec::new(),
            unusable: vec!["x cannot be opened".to_owned()],
            bounds: vec!["2 ranks".to_owned()],
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let expected = [pair("unusable", "x cannot be opened"), pair("bounds", "2 ranks")];
        assert_eq!(lines(Ok(survey)), expected);
        assert_eq!(lines(Err("no adapter".to_owned())), [pair("none", "no adapter")]);
    }
}
