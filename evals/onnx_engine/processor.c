/* Makes a process believe that it runs on an older x86 processor; Linux, Intel since Ivy Bridge.
 *
 *   cc -O2 -shared -fPIC -o processor.so processor.c
 *   PROCESSOR=avx2 LD_PRELOAD=./processor.so python …
 *
 * oneDNN, MKL and torch have variables for that, ONNX Runtime has none: it asks CPUID. So CPUID is
 * made to fault, and the fault is answered without AMX, BF16, FP16 and AVX-VNNI (PROCESSOR=avx512:
 * as Cascade Lake), and without AVX-512 and its VNNI either (PROCESSOR=avx2: as Haswell).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
#define BIT(n) (1u << (n))

static int without_avx512;

static void allow_cpuid(long allowed) { syscall(SYS_arch_prctl, ARCH_SET_CPUID, allowed); }

static void answer(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *code = (const uint8_t *)registers[REG_RIP];
  if (code[0] != 0x0f || code[1] != 0xa2) { /* no CPUID: a real fault, which happens again */
    signal(number, SIG_DFL);
    return;
  }
  uint32_t leaf = registers[REG_RAX], part = registers[REG_RCX], a, b, c, d;
  allow_cpuid(1);
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(part));
  allow_cpuid(0);
  if (leaf == 7 && part == 0) {
    d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));
    if (without_avx512) {
      b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(28) | BIT(30) | BIT(31));
      c &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14));
    }
  }
  if (leaf == 7 && part == 1) {
    a &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23));
    d &= ~(BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19));
  }
  registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
  const char *processor = getenv("PROCESSOR");
  if (!processor) return;
  without_avx512 = !strcmp(processor, "avx2");
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  allow_cpuid(0);
}
