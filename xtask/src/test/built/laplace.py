"""Solves Laplace's equation on a square by conjugate gradients, and prints iterations and norms."""

import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc

SIDE = 40
grid = PETSc.DMDA().create([SIDE, SIDE], stencil_width=1, stencil_type="star")
matrix = grid.createMatrix()
(first_x, end_x), (first_y, end_y) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for y in range(first_y, end_y):
    for x in range(first_x, end_x):
        row.index, row.field = (x, y), 0
        for step_x, step_y, value in (0, 0, 4.0), (-1, 0, -1.0), (1, 0, -1.0), (0, -1, -1.0), (0, 1, -1.0):
            place = (x + step_x, y + step_y)
            if all(0 <= coordinate < SIDE for coordinate in place):
                column.index, column.field = place, 0
                matrix.setValueStencil(row, column, value)
matrix.assemble()
solution, given = matrix.createVecRight(), matrix.createVecLeft()
given.set(1.0)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-8)
solver.solve(given, solution)
residual = given.duplicate()
matrix.mult(solution, residual)
residual.aypx(-1, given)
if solver.getConvergedReason() > 0:
    numbers = f"{residual.norm():.6e} {solution.norm():.10e}"
    PETSc.Sys.Print("converged", solver.getIterationNumber(), numbers)
