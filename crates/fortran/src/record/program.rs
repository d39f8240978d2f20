//! The Fortran program: a subroutine for each call, which sets every argument, calls, and prints the results.

use super::arguments::{ArgumentClass, RecordArgument, arguments};
use super::callbacks::{functions, own};
use super::{RecordVariant, RecordedCall};
use crate::calls::{BindingForm, variable};
use crate::data::ProcedureParameter;
use crate::interfaces::{call, declared};
use crate::kinds::CallVariant;
use std::fmt::Write;

/// Source of the procedures that print values, one line each: `f NAME=VALUES`.
const SHOWN: &str = include_str!("../../record/shown.f90");

/// Returns the expression of a number in variant `variant_`, element `k_`.
fn number(of: impl Fn(usize, RecordVariant) -> i64) -> String {
    let first = of(0, RecordVariant::Plain);
    let (by_variant, by_element) =
        (of(0, RecordVariant::Special) - first, of(1, RecordVariant::Plain) - first);
    let times = |n: i64, name| if n == 0 { String::new() } else { format!(" + {n}_8*{name}") };
    format!("({first}_8{}{})", times(by_variant, "variant_"), times(by_element, "k_"))
}

fn list(element: &str, n: usize) -> String {
    format!("&\n    [({element}, k_ = 0, {})]", n - 1)
}

fn truth(a: &RecordArgument) -> String {
    let fixed = |variant| a.truth(0, variant);
    let (plain, special) = (fixed(RecordVariant::Plain), fixed(RecordVariant::Special));
    let truth = match (plain, special, a.name == "flag") {
        (true, true, _) => ".true.".to_owned(),
        (false, false, _) => ".false.".to_owned(),
        (_, _, true) => "variant_ /= 1".to_owned(),
        _ => format!("mod({} + k_ + variant_, 2) == 0", a.place),
    };
    // An argument that only the call sets begins with the opposite value.
    if a.input { truth } else { format!(".not. ({truth})") }
}

/// Returns the statements that set an argument.
fn set(a: &RecordArgument, kind: &str) -> String {
    let (name, place) = (&a.name, a.place);
    let text = |name: &str, what: &str| {
        format!("  write({name}, '(A,I0,A,I0,A)') ' i', {place}, 'v', variant_, '{what}'\n")
    };
    let values = number(|k, variant| a.given(k, variant));
    match a.class {
        ArgumentClass::Number if a.kind == "RANK" && a.count == 9 => {
            format!("  {name} = reshape({}, [3, 4])\n", list(&values, 12))
        }
        ArgumentClass::Number if a.array => format!("  {name} = {}\n", list(&values, 4)),
        ArgumentClass::Number if a.is_room() => {
            let [room, none] = [RecordVariant::Plain, RecordVariant::Asking].map(|v| a.given(0, v));
            format!("  {name} = merge({none}, {room}, variant_ == 3)\n")
        }
        ArgumentClass::Number | ArgumentClass::State | ArgumentClass::Attribute => {
            format!("  k_ = 0\n  {name} = {values}\n")
        }
        ArgumentClass::Handle(_) => {
            let small = number(|k, _| a.handle_given(k, RecordVariant::Special));
            let large = number(|k, _| a.handle_given(k, RecordVariant::Plain));
            let value = format!("int(merge({small}, {large}, variant_ == 1))");
            let part = if kind.starts_with("type(") { "%MPI_VAL" } else { "" };
            let value = if a.array { list(&value, 4) } else { value };
            format!("  k_ = 0\n  {name}{part} = {value}\n")
        }
        ArgumentClass::Status => {
            let all = list(&format!("int({values})"), if a.array { 32 } else { 8 });
            match (kind.starts_with("type("), a.array) {
                (true, _) => format!("  {name} = transfer({all}, {name})\n"),
                (false, true) => format!("  {name} = reshape({all}, [8, 4])\n"),
                (false, false) => format!("  {name} = {all}\n"),
            }
        }
        ArgumentClass::Logical | ArgumentClass::RawLogical if a.array => {
            format!("  {name} = {}\n", list(&truth(a), 4))
        }
        ArgumentClass::Logical | ArgumentClass::RawLogical => {
            format!("  k_ = 0\n  {name} = {}\n", truth(a))
        }
        ArgumentClass::Text => text(name, ""),
        ArgumentClass::Texts => {
            let blank = if a.name == "argv" { "  argv(3) = ' '\n" } else { "" };
            let each = ["a", "b", "c", "d"].into_iter().enumerate();
            let all: String =
                each.map(|(i, what)| text(&format!("{name}({})", i + 1), what)).collect();
            all + blank
        }
        ArgumentClass::Table => format!(
            "  {name} = ' '\n  {name}(:, 1) = ['one  ', 'two  ', 'three']\n  {name}(2, 2) = ' more'\n"
        ),
        ArgumentClass::Buffer => {
            format!("  {name} = 0\n  {name}(1) = 7000 + 10 * {place} + variant_\n")
        }
        ArgumentClass::Address if kind == "type(c_ptr)" => format!("  {name} = c_null_ptr\n"),
        ArgumentClass::Address => format!("  {name} = -5\n"),
        ArgumentClass::Function | ArgumentClass::Absent => String::new(),
    }
}

/// Returns the statement that prints a variable.
fn shown(a: &RecordArgument, kind: &str) -> String {
    let name = &a.name;
    let typed = kind.starts_with("type(");
    let value = match a.class {
        ArgumentClass::Handle(_) if typed => format!("{name}%MPI_VAL"),
        ArgumentClass::Status if typed => format!("transfer({name}, [0])"),
        ArgumentClass::Status if a.array => format!("reshape({name}, [32])"),
        ArgumentClass::Address if kind == "type(c_ptr)" => format!("transfer({name}, 0_8)"),
        ArgumentClass::Buffer => format!("{name}(1)"),
        _ => name.clone(),
    };
    format!("  call show('{name}', {value})\n")
}

fn declaration(a: &RecordArgument, p: &ProcedureParameter, way: CallVariant) -> String {
    match a.class {
        ArgumentClass::Buffer if way == CallVariant::Old => format!("integer(8) :: {}(4)", a.name),
        ArgumentClass::Buffer => format!("integer(8), asynchronous :: {}(4)", a.name),
        ArgumentClass::Table => format!("character(len=20) :: {}(3, 4)", a.name),
        _ => variable(p, way),
    }
}

fn caller(c: &RecordedCall, number: usize) -> String {
    let (procedure, way) = (&c.procedure, c.way);
    let all = arguments(procedure, way.function());
    let shown_ones: Vec<_> =
        all.iter().zip(procedure.of(way.function())).filter(|(_, p)| !p.c_alone).collect();
    let mut out = format!("subroutine caller{number}()\n  integer :: k_, ierror\n");
    let (mut sets, mut shows) = (String::new(), String::new());
    let (mut plain, mut special) = (Vec::new(), Vec::new());
    for (a, p) in &shown_ones {
        let kind = declared(p, way).kind;
        let name = if a.class == ArgumentClass::Function { own(p, way) } else { a.name.clone() };
        if a.class != ArgumentClass::Function {
            writeln!(out, "  {}", declaration(a, p, way)).unwrap();
        }
        sets += &set(a, &kind);
        special.push(a.special(procedure).map_or(name.clone(), |(special, _)| special.to_owned()));
        plain.push(name);
        // Callbacks change the state if they get it by reference.
        if a.output || a.class == ArgumentClass::State {
            shows += &shown(a, &kind);
        }
    }
    let error = procedure.has_error();
    if error {
        shows.insert_str(0, "  call show('ierror', ierror)\n");
        plain.push("ierror".to_owned());
        if way == CallVariant::Old {
            special.push("ierror".to_owned());
        }
    }
    let function = c.function.as_deref().unwrap_or("-");
    let statement = |arguments: &[String]| {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let statement = call(&c.name, &arguments);
        match procedure.returns[0].as_deref() {
            Some("double" | "MPI_Aint") => format!("call show('result', {statement})"),
            _ => format!("call {statement}"),
        }
    };
    write!(
        out,
        "{sets}  ierror = -1\n  call begin({number}, '{function}')\n  if (variant_ == 1) then\n    {}\n  \
         else\n    {}\n  end if\n{shows}end subroutine\n",
        statement(&special),
        statement(&plain),
    )
    .unwrap();
    out
}

/// Returns the program of a form. It makes the calls from `WEFT_FIRST` on, in the variant `WEFT_VARIANT`.
pub fn program(form: BindingForm, calls: &[RecordedCall]) -> String {
    let uses = match form {
        BindingForm::Include => "",
        BindingForm::Mpi => "  use mpi\n",
        BindingForm::MpiF08 => "  use mpi_f08\n",
    };
    let include = if form == BindingForm::Include { "  include 'mpif.h'\n" } else { "" };
    let mut out = format!(
        "{SHOWN}\nmodule callers\n{uses}  use shown\n  use, intrinsic :: iso_c_binding, only: c_ptr, &\n    c_null_ptr, c_f_pointer\n  \
         implicit none\n{include}contains\n"
    );
    out +=
        &functions(if form == BindingForm::MpiF08 { CallVariant::New } else { CallVariant::Old });
    for (number, c) in calls.iter().enumerate() {
        out += &caller(c, number);
    }
    out.push_str("end module\n\nprogram record\n  use callers\n  use shown\n  implicit none\n  integer :: n\n");
    writeln!(out, "  call ready()\n  do n = first_, {}\n    select case (n)", calls.len() - 1)
        .unwrap();
    for number in 0..calls.len() {
        writeln!(out, "    case ({number})\n      call caller{number}()").unwrap();
    }
    out.push_str("    end select\n  end do\n  call begin(-1, 'end')\nend program\n");
    out
}
