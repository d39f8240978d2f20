//! Writes the sources into a directory, with the programs that call every procedure.

use weft_fortran::record::{RecordVariant, library, program, recorded};
use weft_fortran::{BindingForm, calls};

fn main() {
    let to = std::path::PathBuf::from(std::env::args_os().nth(1).expect("a directory"));
    std::fs::create_dir_all(&to).expect("the directory can be made");
    for (name, text) in weft_fortran::sources() {
        std::fs::write(to.join(name), text).expect("the source can be written");
    }
    std::fs::write(to.join("record.c"), library()).expect("the library can be written");
    for form in [BindingForm::Include, BindingForm::Mpi, BindingForm::MpiF08] {
        let name = format!("calls_{form:?}.f90").to_lowercase();
        std::fs::write(to.join(name), calls(form).0).expect("the program can be written");
        let all = recorded(form);
        let name = format!("record_{form:?}.f90").to_lowercase();
        std::fs::write(to.join(name), program(form, &all)).expect("the program can be written");
        for variant in RecordVariant::ALL {
            let mut text = String::new();
            for (number, call) in all.iter().enumerate() {
                text += &format!("# {number} {}\n", call.title());
                for line in call.expected(form, variant) {
                    text += &(line + "\n");
                }
            }
            let name = format!("record_{form:?}.{}", variant as usize).to_lowercase();
            std::fs::write(to.join(name), text).expect("what is expected can be written");
        }
    }
}
