//! Check of the book as its readers see it: mdbook builds it into `target/book`, and all links lead to existing places.

use crate::root;
use mdbook_driver::MDBook;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Builds the book and returns its pages by their paths.
fn build() -> HashMap<PathBuf, String> {
    let book = MDBook::load(root().join("book")).unwrap();
    book.build().unwrap();
    let to = book.build_dir_for("html");
    assert_eq!(plain(&to), root().join("target/book"));
    let entries = fs::read_dir(&to).unwrap().flatten().map(|entry| plain(&entry.path()));
    // 404.html is shown at any address, so its links begin at the root of a server and are not checked.
    let pages = entries.filter(|path| {
        path.extension().is_some_and(|end| end == "html") && !path.ends_with("404.html")
    });
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Returns the path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            _ => out.push(part),
        }
    }
    out
}

/// Returns the values of an attribute of a page.
fn values<'a>(page: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {name}=\"");
    let parts: Vec<&str> = page.split(begin.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|part| part.split('"').next())
}

/// Describes the error in a link of the page at `from`. Returns `None` if the link is correct.
fn fault(pages: &HashMap<PathBuf, String>, from: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("data:") || link.starts_with("mailto:") {
        return None;
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let to = match file {
        "" => from.to_owned(),
        _ => plain(&from.parent().unwrap_or(from).join(file)),
    };
    let wrong = |why: &str| Some(format!("{}: {link}: {why}", from.display()));
    if !to.starts_with(root().join("target/book")) || !to.is_file() {
        return wrong("there is no such file in the book");
    }
    let missing = |page: &String| !place.is_empty() && !values(page, "id").any(|id| id == place);
    if pages.get(&to).is_some_and(missing) { wrong("there is no such place") } else { None }
}

#[test]
fn the_book_is_built_and_its_links_hold() {
    let pages = build();
    assert!(pages.len() > 10, "{}", pages.len());
    let mut faults = Vec::new();
    let mut links = 0;
    for (path, page) in &pages {
        for link in values(page, "href").chain(values(page, "src")) {
            links += 1;
            faults.extend(fault(&pages, path, link));
        }
        // mdbook leaves an include unchanged if it finds no file.
        if page.contains("{{#") {
            faults.push(format!("{}: an include", path.display()));
        }
    }
    assert!(links > 100, "{links}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // Words that these pages contain only if they include the content of other documents.
    for (page, text) in [("how-it-works.html", "MPI_Send"), ("glossary.html", "copy model")] {
        assert!(pages[&root().join("target/book").join(page)].contains(text), "{page}: {text}");
    }
}
