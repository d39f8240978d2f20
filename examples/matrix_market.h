/* Reads a sparse matrix from a Matrix Market file: "matrix coordinate real|integer general|symmetric".
 * Format: https://math.nist.gov/MatrixMarket/formats.html */
#ifndef MATRIX_MARKET_H
#define MATRIX_MARKET_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compressed rows: row i has the entries start[i] .. start[i+1]. */
struct matrix {
    int rows, columns;
    int *start, *column;
    double *value;
};

static void matrix_free(struct matrix *m) { free(m->start), free(m->column), free(m->value); }

/* NULL, or what is wrong with the file. `line` is set to the line that was read last. */
static const char *matrix_read(FILE *file, struct matrix *m, long *line)
{
    char text[1024], object[64], format[64], field[64], symmetry[64];
    long stored, count = 0;
    int *row_of = NULL, *column_of = NULL;
    double *value_of = NULL;
    const char *wrong = NULL;
    memset(m, 0, sizeof *m);
    *line = 1;
    if (!fgets(text, sizeof text, file)) return "the file is empty";
    for (char *c = text; *c; c++) *c = (char)tolower((unsigned char)*c);
    if (sscanf(text, "%%%%matrixmarket %63s %63s %63s %63s", object, format, field, symmetry) != 4)
        return "no %%MatrixMarket header";
    if (strcmp(object, "matrix") || strcmp(format, "coordinate")) return "not a matrix in coordinate format";
    if (strcmp(field, "real") && strcmp(field, "integer")) return "neither real nor integer";
    int symmetric = !strcmp(symmetry, "symmetric");
    if (!symmetric && strcmp(symmetry, "general")) return "neither symmetric nor general";
    do {
        ++*line;
        if (!fgets(text, sizeof text, file)) return "no line with rows, columns and entries";
    } while (text[0] == '%' || text[strspn(text, " \t\r\n")] == 0);
    if (sscanf(text, "%d %d %ld", &m->rows, &m->columns, &stored) != 3 || m->rows < 1 || m->columns < 1 || stored < 0 ||
        stored > 1000000000)
        return "bad line with rows, columns and entries";
    if (symmetric && m->rows != m->columns) return "symmetric, but not square";

    size_t most = (size_t)stored * (symmetric ? 2 : 1) + 1;
    row_of = malloc(most * sizeof *row_of), column_of = malloc(most * sizeof *column_of);
    value_of = malloc(most * sizeof *value_of), m->start = calloc((size_t)m->rows + 2, sizeof *m->start);
    m->column = malloc(most * sizeof *m->column), m->value = malloc(most * sizeof *m->value);
    if (!row_of || !column_of || !value_of || !m->start || !m->column || !m->value) wrong = "too large for memory";

    for (long read = 0; !wrong && read < stored;) {
        int row, column;
        double value;
        ++*line;
        if (!fgets(text, sizeof text, file)) wrong = "fewer entries than announced";
        else if (text[0] == '%' || text[strspn(text, " \t\r\n")] == 0) continue;
        else if (sscanf(text, "%d %d %lf", &row, &column, &value) != 3) wrong = "not 'row column value'";
        else if (row < 1 || row > m->rows || column < 1 || column > m->columns) wrong = "an entry outside the matrix";
        else {
            row_of[count] = row - 1, column_of[count] = column - 1, value_of[count++] = value;
            if (symmetric && row != column) row_of[count] = column - 1, column_of[count] = row - 1, value_of[count++] = value;
            read++;
        }
    }
    /* Counting sort by row: start[i + 2] counts row i, then start[i + 1] is where its next entry goes. */
    for (long k = 0; !wrong && k < count; k++) m->start[row_of[k] + 2]++;
    for (int i = 0; !wrong && i < m->rows; i++) m->start[i + 2] += m->start[i + 1];
    for (long k = 0; !wrong && k < count; k++) {
        int place = m->start[row_of[k] + 1]++;
        m->column[place] = column_of[k], m->value[place] = value_of[k];
    }
    free(row_of), free(column_of), free(value_of);
    if (wrong) matrix_free(m);
    return wrong;
}

#endif
