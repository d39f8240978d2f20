//! Writes the sources into a directory, with the programs that call every procedure.

use weft_fortran::{Form, calls};

fn main() {
    let to = std::path::PathBuf::from(std::env::args_os().nth(1).expect("a directory"));
    std::fs::create_dir_all(&to).expect("the directory can be made");
    for (name, text) in weft_fortran::sources() {
        std::fs::write(to.join(name), text).expect("the source can be written");
    }
    for form in [Form::Include, Form::Mpi, Form::MpiF08] {
        let name = format!("calls_{form:?}.f90").to_lowercase();
        std::fs::write(to.join(name), calls(form).0).expect("the program can be written");
    }
}
