// Plain C for the GPU: no CUDA headers, and nothing of the CUDA toolkit but ptxas.
int square(int value);

__attribute__((nvptx_kernel)) void squares(int *values)
{
    const int at = __nvvm_read_ptx_sreg_tid_x();
    values[at] = square(at);
}
