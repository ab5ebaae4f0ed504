/* Wine 8 lacks bcryptprimitives.dll, which every Rust program asks for randomness. For tests under wine only. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return RtlGenRandom(data, (ULONG)length);
}
