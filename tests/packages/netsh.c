/* Stands in for the program that changes the firewall of Windows, which wine does not have: writes down what it is asked for. */
#include <stdio.h>
#include <windows.h>

int main(void) {
    FILE *asked = fopen("C:\\netsh.txt", "a");
    if (!asked) return 1;
    fprintf(asked, "%s\n", GetCommandLineA());
    return fclose(asked);
}
