//! Variables of the tool interface (MPI_T), as `weft info --variables` lists them.

use std::fmt::Write;

/// A control or performance variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// True for a control variable, false for a performance variable.
    pub controls: bool,
    /// Name in MPI_T.
    pub name: String,
    /// Category of the variable.
    pub category: String,
    /// Allowed values, or the kind of the number.
    pub values: String,
    /// Scope of the variable. For a control variable, a note if all processes need the same value. For a performance variable, the
    /// object to which it belongs: the process or a communicator.
    pub of: String,
    /// Description of the variable.
    pub doc: String,
}

/// Reads the text of `weft_variables`: lines of the six fields of [`Variable`], separated by tabs.
pub fn parse(text: &str) -> Result<Vec<Variable>, String> {
    let variable = |line: &str| {
        let unknown = || format!("variables of the library: unknown line `{line}`");
        let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
        let [kind, name, category, values, of, doc] =
            <[String; 6]>::try_from(fields).map_err(|_| unknown())?;
        let controls = match kind.as_str() {
            "control" => true,
            "performance" => false,
            _ => return Err(unknown()),
        };
        Ok(Variable { controls, name, category, values, of, doc })
    };
    text.lines().map(variable).collect()
}

/// Formats two tables, of control variables and of performance variables. Categories are in the order of their first variables.
pub fn table(variables: &[Variable]) -> String {
    let kinds = [
        (true, "control variables: MPI_T_cvar_write before MPI_Init, or the environment"),
        (false, "performance variables: MPI_T_pvar_read"),
    ];
    let mut out = String::new();
    for (controls, title) in kinds {
        let ours: Vec<_> = variables.iter().filter(|v| v.controls == controls).collect();
        let wide = |of: fn(&Variable) -> &str| ours.iter().map(|v| of(v).len()).max().unwrap_or(0);
        let (names, values, ofs) = (wide(|v| &v.name), wide(|v| &v.values), wide(|v| &v.of));
        let mut categories: Vec<&str> = Vec::new();
        for variable in &ours {
            if !categories.contains(&variable.category.as_str()) {
                categories.push(&variable.category);
            }
        }
        let gap = if out.is_empty() { "" } else { "\n" };
        writeln!(out, "{gap}{title}").expect("a string grows");
        for category in categories {
            writeln!(out, "  {category}").expect("a string grows");
            for v in ours.iter().filter(|v| v.category == category) {
                let Variable { name, values: value, of, doc, .. } = v;
                writeln!(out, "    {name:<names$}  {value:<values$}  {of:<ofs$}  {doc}")
                    .expect("a string grows");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_library_become_two_tables() {
        let text = "control\tWEFT_A\tweft.x\t0, 1\tall alike\tone thing\n\
                    control\tWEFT_LONG\tweft.y\ttext\teach process\tanother\n\
                    control\tWEFT_C\tweft.x\t0 to 9\tall alike\ta third\n\
                    performance\tweft.x.n\tweft.x\tcounter\tprocess\ta number\n";
        let expected = "control variables: MPI_T_cvar_write before MPI_Init, or the environment\n  \
            weft.x\n    \
              WEFT_A     0, 1    all alike     one thing\n    \
              WEFT_C     0 to 9  all alike     a third\n  \
            weft.y\n    \
              WEFT_LONG  text    each process  another\n\n\
            performance variables: MPI_T_pvar_read\n  \
            weft.x\n    \
              weft.x.n  counter  process  a number\n";
        assert_eq!(table(&parse(text).unwrap()), expected);
        for wrong in ["control\tWEFT_A\n", "event\ta\tb\tc\td\te\n"] {
            assert!(parse(wrong).unwrap_err().contains(wrong.trim_end()));
        }
    }
}
