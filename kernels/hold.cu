// Keeps the card busy while the host queues the next launch, so that the events around a launch
// enclose the kernel alone and not the host's way to it.
//
// Launch: one thread.
extern "C" __global__ void hold(long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}
