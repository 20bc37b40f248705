int square(int value)
{
    return value * value;
}
