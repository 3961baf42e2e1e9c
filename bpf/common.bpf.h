/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs read of the kernel's structures. No vmlinux.h: each structure here has only the members that are
 * read. preserve_access_index makes libbpf look up their real offsets in the running kernel's BTF (CO-RE), so neither
 * their order nor what lies between them matters. The part of a name behind ___ is ignored in that look-up.
 */
#ifndef INFERWATCH_COMMON_BPF_H
#define INFERWATCH_COMMON_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define CORE __attribute__((preserve_access_index))
#define TASK_COMM_LEN 16

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
} CORE;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} CORE;

struct sched_entity {
	u64 sum_exec_runtime;
} CORE;

/* Empty in a kernel without CONFIG_SCHED_INFO. */
struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
} CORE;

/* Sums over the threads of the process that have ended (kernel/exit.c, __exit_signal()). */
struct signal_struct {
	u64 utime, stime;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	unsigned long long sum_sched_runtime;
	u64 cutime, cstime; /* and the like over children that were waited for (wait_task_zombie()) */
	unsigned long cnvcsw, cnivcsw, cmin_flt, cmaj_flt;
} CORE;

struct task_struct {
	int pid, tgid;
	unsigned int __state;
	int exit_state;
	char comm[TASK_COMM_LEN];
	struct sched_entity se;
	struct sched_info sched_info;
	u64 utime, stime, start_boottime;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	struct task_struct *group_leader;
	struct signal_struct *signal;
} CORE;

/* Before 5.14 (commit 2f064a59a11f) the member was called `state`. */
struct task_struct___before_5_14 {
	long state;
} CORE;

#endif
