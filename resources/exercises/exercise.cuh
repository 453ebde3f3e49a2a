// The types of the exercises. A picture is grey, 8 bits a pixel, row after row without gaps.
#ifndef KERNELSCOPE_EXERCISE
#define KERNELSCOPE_EXERCISE

// The sizes of the picture; the rest is for the filters of the program.
struct Picture {
    int width, height;
    int others[7];
};

typedef unsigned char Cell;

// The index of the cell that stands for one outside: the edge goes on.
__device__ inline int clamped(int index, int size)
{
    return index < 0 ? 0 : index < size ? index : size - 1;
}
#endif
