//! Writes the sources into a directory: what `cargo xtask install` installs.

fn main() {
    let to = std::path::PathBuf::from(std::env::args_os().nth(1).expect("a directory"));
    std::fs::create_dir_all(&to).expect("the directory can be made");
    for (name, text) in weft_fortran::sources() {
        std::fs::write(to.join(name), text).expect("the source can be written");
    }
}
