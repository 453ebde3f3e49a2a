// The types of the exercises. A picture is grey, 8 bits a pixel, row after row without gaps.
#ifndef KERNELSCOPE_EXERCISE
#define KERNELSCOPE_EXERCISE

// The sizes of the picture; the rest is for the filters of the program.
struct Picture {
    int width, height;
    int others[7];
};

#ifdef KERNELSCOPE_TRIAL
// On the emulated GPU each conversion to a number is counted as a read from global memory. Keep values that
// you read in an int or an unsigned char: a Cell that is copied stays uncounted until it is used.
struct Cell {
    unsigned char value;
    operator int() const
    {
        __atomic_fetch_add(&trial_loads, 1, __ATOMIC_RELAXED);
        return value;
    }
    Cell& operator=(int number)
    {
        value = (unsigned char)number;
        return *this;
    }
};
#else
typedef unsigned char Cell;
#endif

// The index of the cell that stands for one outside: the edge goes on.
__device__ inline int clamped(int index, int size)
{
    return index < 0 ? 0 : index < size ? index : size - 1;
}
#endif
