//! `mpirun`: see `weft_launch`.

fn main() -> std::process::ExitCode {
    weft_launch::main()
}
