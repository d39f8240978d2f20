#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int c,char**v){ MPI_Init(&c,&v); int r,n; MPI_Comm_rank(MPI_COMM_WORLD,&r); MPI_Comm_size(MPI_COMM_WORLD,&n);
 for (int len=0; len<5000000; len=len*3+1) { char*b=malloc(len+1); if(r==0){ memset(b,len%100,len); MPI_Send(b,len,MPI_CHAR,(r+1)%n,7,MPI_COMM_WORLD);} 
   else { MPI_Status s; MPI_Recv(b,len,MPI_CHAR,r-1,7,MPI_COMM_WORLD,&s); if (s.MPI_SOURCE!=r-1||s.MPI_TAG!=7){printf("bad status\n");exit(1);} if(r+1<n) MPI_Send(b,len,MPI_CHAR,r+1,7,MPI_COMM_WORLD); for(int i=0;i<len;i++) if(b[i]!=len%100){printf("bad data\n");exit(1);} }
   if (n==1) { } free(b);}
 double x=r,s=0; MPI_Allreduce(&x,&s,1,MPI_DOUBLE,MPI_SUM,MPI_COMM_WORLD); 
 MPI_Barrier(MPI_COMM_WORLD);
 printf("rank %d of %d sum %g\n",r,n,s); MPI_Finalize(); return s==n*(n-1)/2.0?0:1;}
