# In the finished container: mpicc compiles a program, which runs on two ranks, and the command of the recipe's first lines works.
cd /tmp
mpicc /packages/sum.c -o sum
mpiexec -n 2 ./sum
mpiexec -n 4 weft info > facts
test "$(grep -c '^library$' facts)" = 4
test -z "$(ls /dev/shm)"
