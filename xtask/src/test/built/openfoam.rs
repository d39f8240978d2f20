//! OpenFOAM, as Debian built it for Open MPI in C++: the flow in a square cavity below a lid that moves.

use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// Makes a file with the header that OpenFOAM demands: the file's name, its class, the object's name, and the text.
macro_rules! foam {
    ($name:literal, $class:literal, $object:literal, $text:literal) => {
        (
            $name,
            concat!(
                "FoamFile { version 2.0; format ascii; class ",
                $class,
                "; object ",
                $object,
                "; }\n",
                $text
            ),
        )
    };
}

/// Number of cells.
const CELLS: usize = 400;

/// Number of time steps.
const STEPS: usize = 20;

/// A case with [`CELLS`] cells and [`STEPS`] steps. Digits and tolerances are finer than usual, for an exact comparison.
const CASE: [(&str, &str); 8] = [
    foam!(
        "system/controlDict",
        "dictionary",
        "controlDict",
        "startFrom startTime;
startTime 0;
stopAt endTime;
endTime 0.1;
deltaT 0.005;
writeControl timeStep;
writeInterval 20;
writePrecision 12;
"
    ),
    foam!(
        "system/fvSolution",
        "dictionary",
        "fvSolution",
        "solvers
{
    p { solver PCG; preconditioner DIC; tolerance 1e-10; relTol 0; }
    pFinal { $p; }
    U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-10; relTol 0; }
}
PISO { nCorrectors 2; pRefCell 0; pRefValue 0; }
"
    ),
    foam!(
        "system/fvSchemes",
        "dictionary",
        "fvSchemes",
        "ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
"
    ),
    foam!(
        "system/blockMeshDict",
        "dictionary",
        "blockMeshDict",
        "scale 0.1;
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 0.1) (1 0 0.1) (1 1 0.1) (0 1 0.1));
blocks (hex (0 1 2 3 4 5 6 7) (20 20 1) simpleGrading (1 1 1));
boundary
(
    lid { type wall; faces ((3 7 6 2)); }
    walls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }
    sides { type empty; faces ((0 3 2 1) (4 5 6 7)); }
);
"
    ),
    foam!(
        "system/decomposeParDict",
        "dictionary",
        "decomposeParDict",
        "numberOfSubdomains {ranks};
method simple;
coeffs { n ({columns} {rows} 1); }
"
    ),
    foam!("constant/transportProperties", "dictionary", "transportProperties", "nu 0.01;\n"),
    foam!(
        "0/p",
        "volScalarField",
        "p",
        "dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField
{
    lid { type zeroGradient; }
    walls { type zeroGradient; }
    sides { type empty; }
}
"
    ),
    foam!(
        "0/U",
        "volVectorField",
        "U",
        "dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField
{
    lid { type fixedValue; value uniform (1 0 0); }
    walls { type noSlip; }
    sides { type empty; }
}
"
    ),
];

pub(super) const SOAK: &[PackagedProgram] = &[PackagedProgram {
    name: "OpenFOAM, a cavity",
    // OpenFOAM refuses to run in parallel on one rank. Each number of ranks divides the cells in another way.
    ranks: &[2, 4],
    theirs: &[2, 4],
    before: &["sh", "-c", "\"$FOAM\"/blockMesh && \"$FOAM\"/decomposePar"],
    command: &["{soak}/usr/bin/icoFoam", "-parallel"],
    settings: &[
        ("FOAM", "{soak}/usr/bin"),
        // Folder of the settings that all of OpenFOAM's programs read.
        ("WM_PROJECT_DIR", "{soak}/usr/share/openfoam"),
    ],
    files: &CASE,
    outcome: flow,
    tolerance: 1e-6,
    ..PackagedProgram::USUAL
}];

/// Returns the Courant numbers of all steps, and each rank's final velocities and pressures.
fn flow(run: &PackagedRun) -> Result<ProgramResult, String> {
    let courant = run.output.lines().filter_map(|line| line.strip_prefix("Courant Number mean: "));
    let words = courant.flat_map(|line| line.split(" max: "));
    let mut numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    if numbers.len() != 2 * STEPS {
        return Err(format!("icoFoam prints no {STEPS} Courant numbers:\n{}", run.output));
    }
    for rank in 0..run.ranks {
        for field in ["U", "p"] {
            let name = format!("processor{rank}/0.1/{field}");
            numbers.extend(cells(&String::from_utf8_lossy(&run.file(&name)?)));
        }
    }
    // A velocity has three numbers, a pressure one.
    if numbers.len() != 2 * STEPS + 4 * CELLS {
        return Err(format!("icoFoam writes {} numbers, not those of all cells", numbers.len()));
    }
    Ok(ProgramResult { numbers, ..ProgramResult::default() })
}

/// Returns the numbers of a field in all cells: the list after 'internalField', its type, and its length.
fn cells(field: &str) -> Vec<f64> {
    let list = field.split_once("internalField").map_or("", |(_, list)| list);
    let list =
        list.split(';').next().and_then(|list| list.split_once('(')).map_or("", |list| list.1);
    list.split(['(', ')', ' ', '\n']).filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_numbers_of_its_cells_alone() {
        let velocities =
            "internalField nonuniform List<vector>\n2\n(\n(1 2e-3 0)\n(-4 5 0)\n)\n;\nlid (7)";
        assert_eq!(cells(velocities), [1.0, 2e-3, 0.0, -4.0, 5.0, 0.0]);
        assert_eq!(
            cells("internalField nonuniform List<scalar> \n2\n(\n1\n-2\n)\n;\n"),
            [1.0, -2.0]
        );
        assert_eq!(cells("boundaryField (1 2)"), [0.0; 0]);
    }
}
