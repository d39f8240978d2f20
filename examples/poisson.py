"""Writes the matrix of the 2-D Poisson equation (five-point stencil on an n x n grid) as a Matrix Market file.

    python3 poisson.py 32 > poisson32.mtx
"""

import sys

n = int(sys.argv[1]) if len(sys.argv) > 1 else 32
entries = []
for row in range(n):
    for column in range(n):
        here = row * n + column + 1
        entries.append((here, here, 4))
        if column + 1 < n:
            entries.append((here + 1, here, -1))
        if row + 1 < n:
            entries.append((here + n, here, -1))

print("%%MatrixMarket matrix coordinate real symmetric")
print(f"% 2-D Poisson equation, five-point stencil, {n} x {n} grid; made by poisson.py")
print(n * n, n * n, len(entries))
for entry in entries:
    print(*entry)
