//! Functions that programs call and that the ABI does not have: conversions from and to Fortran's handles, and functions that MPI
//! 3.0 removed. In `mpi.h` they are inline functions over the ABI, so that a program which uses them needs nothing else of the
//! library that it runs on. They compile as C89, too, since programs that need them are old.

use std::fmt::Write;
use weft_abi_data::Abi;
use weft_abi_data::removed::RemovedFunction;

const TOP: &str = "
/* Not in the ABI, and inline over it. None of it is there with -DWEFT_ABI_ONLY. */
#ifndef WEFT_ABI_ONLY

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define WEFT_INLINE static inline
#elif defined(__GNUC__)
#define WEFT_INLINE static __inline__
#else
#define WEFT_INLINE static
#endif
#if defined(__GNUC__)
#define WEFT_REMOVED(now) __attribute__((__deprecated__(\"removed in MPI 3.0; now it is \" now)))
#else
#define WEFT_REMOVED(now)
#endif
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Wold-style-cast\"
#endif

/* Fortran's INTEGER, and a status of mpi_f08 */
typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;

/* Where Fortran's bindings are part of the program, the addresses that ignore a status; else NULL */
#if defined(__GNUC__)
#ifdef __cplusplus
extern \"C\" {
#endif
extern MPI_Fint weft_status_ignore_[] __attribute__((__weak__));
extern MPI_Fint weft_statuses_ignore_[] __attribute__((__weak__));
#ifdef __cplusplus
}
#endif
#define MPI_F_STATUS_IGNORE      (weft_status_ignore_)
#define MPI_F_STATUSES_IGNORE    (weft_statuses_ignore_)
#define MPI_F08_STATUS_IGNORE    ((MPI_F08_status *)(void *)weft_status_ignore_)
#define MPI_F08_STATUSES_IGNORE  ((MPI_F08_status *)(void *)weft_statuses_ignore_)
#endif

/* Removed types and constants. The two bounds are for MPI_Type_struct alone; no datatype has such combiners. */
typedef MPI_Comm_errhandler_function MPI_Handler_function WEFT_REMOVED(\"MPI_Comm_errhandler_function\");
#define MPI_LB                         ((MPI_Datatype)0x00000001)
#define MPI_UB                         ((MPI_Datatype)0x00000002)
#define MPI_COMBINER_HVECTOR_INTEGER   (-105)
#define MPI_COMBINER_HINDEXED_INTEGER  (-107)
#define MPI_COMBINER_STRUCT_INTEGER    (-110)
";

const BOTTOM: &str = "
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#undef WEFT_INLINE
#undef WEFT_REMOVED
#endif /* WEFT_ABI_ONLY */
";

/// Bodies of the functions that are more than one call. `@` is the prefix of the names. Statuses of C, of Fortran's INTEGER arrays and
/// of mpi_f08 have the same eight numbers.
const BODIES: &[(&str, &str)] = &[
    (
        "Type_extent",
        "    MPI_Aint lb;
    return @Type_get_extent(datatype, &lb, extent);",
    ),
    (
        "Type_lb",
        "    MPI_Aint extent;
    return @Type_get_extent(datatype, displacement, &extent);",
    ),
    (
        "Type_ub",
        "    MPI_Aint lb = 0;
    int code = @Type_get_extent(datatype, &lb, displacement);
    if (code == MPI_SUCCESS) *displacement += lb;
    return code;",
    ),
    ("Type_struct", TYPE_STRUCT),
    (
        "Status_c2f",
        "    int i;
    f_status[0] = c_status->MPI_SOURCE;
    f_status[1] = c_status->MPI_TAG;
    f_status[2] = c_status->MPI_ERROR;
    for (i = 0; i < 5; i++) f_status[3 + i] = c_status->MPI_internal[i];
    return MPI_SUCCESS;",
    ),
    (
        "Status_f2c",
        "    int i;
    c_status->MPI_SOURCE = f_status[0];
    c_status->MPI_TAG = f_status[1];
    c_status->MPI_ERROR = f_status[2];
    for (i = 0; i < 5; i++) c_status->MPI_internal[i] = f_status[3 + i];
    return MPI_SUCCESS;",
    ),
    (
        "Status_c2f08",
        "    *f08_status = *c_status;
    return MPI_SUCCESS;",
    ),
    (
        "Status_f082c",
        "    *c_status = *f08_status;
    return MPI_SUCCESS;",
    ),
    ("Status_f2f08", "    return @Status_f2c(f_status, f08_status);"),
    ("Status_f082f", "    return @Status_c2f(f08_status, f_status);"),
];

/// Body of MPI_Type_struct, with the bounds that MPI_LB and MPI_UB give.
const TYPE_STRUCT: &str = "    int i, n = 0, lower = 0, upper = 0, marks = 0, code;
    MPI_Aint low = 0, high = 0, lb = 0, extent = 0;
    int *lengths;
    MPI_Aint *places;
    MPI_Datatype *types, rest;
    for (i = 0; array_of_types && i < count; i++)
        marks += array_of_types[i] == MPI_LB || array_of_types[i] == MPI_UB;
    if (!marks || !array_of_blocklengths || !array_of_displacements || !newtype)
        return @Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
    code = @Alloc_mem((MPI_Aint)sizeof(int) * count, MPI_INFO_NULL, &lengths);
    if (code != MPI_SUCCESS) return code;
    code = @Alloc_mem((MPI_Aint)sizeof(MPI_Aint) * count, MPI_INFO_NULL, &places);
    if (code == MPI_SUCCESS) {
        code = @Alloc_mem((MPI_Aint)sizeof(MPI_Datatype) * count, MPI_INFO_NULL, &types);
        if (code == MPI_SUCCESS) {
            for (i = 0; i < count; i++) {
                MPI_Aint place = array_of_displacements[i];
                if (array_of_types[i] == MPI_LB) {
                    if (array_of_blocklengths[i] > 0 && (!lower++ || place < low)) low = place;
                } else if (array_of_types[i] == MPI_UB) {
                    if (array_of_blocklengths[i] > 0 && (!upper++ || place > high)) high = place;
                } else {
                    lengths[n] = array_of_blocklengths[i];
                    places[n] = place;
                    types[n++] = array_of_types[i];
                }
            }
            code = @Type_create_struct(n, lengths, places, types, &rest);
            if (code == MPI_SUCCESS) {
                code = @Type_get_extent(rest, &lb, &extent);
                if (code == MPI_SUCCESS) {
                    if (!upper) high = lb + extent;
                    if (!lower) low = lb;
                    code = @Type_create_resized(rest, low, high - low, newtype);
                }
                @Type_free(&rest);
            }
            @Free_mem(types);
        }
        @Free_mem(places);
    }
    @Free_mem(lengths);
    return code;";

/// Returns the body of a function.
fn body(f: &RemovedFunction) -> String {
    match BODIES.iter().find(|(name, _)| *name == f.name) {
        Some((_, body)) => (*body).to_owned(),
        None if f.call.is_empty() => panic!("no body for {}", f.name),
        None => format!("    return @{};", f.call),
    }
}

/// Writes a function, with `@` as the prefix of names.
fn function(f: &RemovedFunction) -> String {
    let RemovedFunction { name, c_params, replacement, .. } = f;
    let warning = match replacement.as_str() {
        "" => String::new(),
        now => format!("WEFT_REMOVED(\"{now}\")\n"),
    };
    format!("\n{warning}WEFT_INLINE int @{name}({c_params}) {{\n{}\n}}\n", body(f))
}

/// Returns the last part of `mpi.h`.
pub fn functions(abi: &Abi, removed: &[RemovedFunction]) -> String {
    let mut out = TOP.to_owned();
    for prefix in ["MPI_", "PMPI_"] {
        out.push('\n');
        for from in &abi.functions {
            let Some(kind) =
                from.name.strip_prefix("MPI_").and_then(|n| n.strip_suffix("_fromint"))
            else {
                continue;
            };
            let (handle, name) = (&from.returns, &from.params[0].name);
            writeln!(
                out,
                "WEFT_INLINE {handle} {prefix}{kind}_f2c(MPI_Fint {name}) {{ return \
                 {prefix}{kind}_fromint({name}); }}\n\
                 WEFT_INLINE MPI_Fint {prefix}{kind}_c2f({handle} {name}) {{ return \
                 {prefix}{kind}_toint({name}); }}"
            )
            .unwrap();
        }
        for f in removed {
            out.push_str(&function(f).replace('@', prefix));
        }
    }
    out.push_str(BOTTOM);
    out
}
