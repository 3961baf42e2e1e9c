/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Layout that tasks.bpf.c shares with daemon/inferwatch/sources/bpf/tasks.py, which checks the sizes when it loads.
 *
 * One pass is one read of the iterator. Times are nanoseconds.
 *
 * What is exact, and what is lost:
 * - `process_value.total` is what the living threads have now plus what signal_struct keeps of the dead ones, so a
 *   thread's death takes nothing away. Exceptions: the kernel keeps no run delay and no timeslices of dead threads;
 *   these two are sums of increases seen from pass to pass, and what a thread did between the last pass and its end is
 *   lost.
 * - `name_value.sums` are such sums of increases for all fields, because a dead thread has no name any more. What dead
 *   threads did after the last pass that saw them is in the total and in no name; Python publishes the difference.
 * - `node_value.other` is such a sum of increases over all threads of processes that are no targets.
 */
#ifndef INFERWATCH_TASKS_H
#define INFERWATCH_TASKS_H

enum task_field {
	RUNTIME, /* se.sum_exec_runtime: all CPU time, precise to the last tick or switch */
	UTIME, /* with tick accounting only sampled: Python scales UTIME : STIME to RUNTIME as cputime_adjust() does */
	STIME,
	RUN_DELAY,
	PCOUNT, /* timeslices */
	NVCSW,
	NIVCSW,
	MIN_FLT,
	MAJ_FLT,
	TASK_FIELDS,
};

/* What signal_struct keeps of children that were waited for, and of theirs. */
enum reaped_field {
	REAPED_UTIME,
	REAPED_STIME,
	REAPED_NVCSW,
	REAPED_NIVCSW,
	REAPED_MIN_FLT,
	REAPED_MAJ_FLT,
	REAPED_FIELDS,
};

enum thread_state {
	RUNNING, /* or ready to run */
	SLEEPING,
	DISK_SLEEP,
	STOPPED, /* or traced */
	ZOMBIE,	 /* or dead */
	OTHER,	 /* idle kernel threads, parked */
	THREAD_STATES,
};

/*
 * Limits. What is over one of them is counted, never dropped in silence.
 *
 * Per thread, in task storage that the kernel frees with the thread: an element of 192 bytes (184 used) and the task's
 * bpf_local_storage of 192 bytes: 2 x 24,576 x 384 bytes = 19 MB at the very most, 3 MB with 8,000 threads.
 * Hash maps are allocated as needed (BPF_F_NO_PREALLOC): an element is about 48 bytes + key + value, so
 * processes: 1,024 x 248 bytes = 0.3 MB; names: 16,384 x 160 bytes = 2.6 MB at most, 64 kB with 20 processes of 20
 * names. MAX_NAMES_PER_PROCESS keeps one process from using up the names of the others.
 */
#define MAX_TARGETS 1024
#define MAX_NAMES 16384
#define MAX_NAMES_PER_PROCESS 128
#define MAX_TARGET_THREADS 24576
#define MAX_OTHER_THREADS 24576

struct task_sums {
	u64 value[TASK_FIELDS];
};

/*
 * Python gives each target a registration number, from 1, never again the same one. It is the key of what is kept of
 * the process, so that nothing of a process that was a target before, or had the same tgid, gets into the new sums.
 */

/* Key of `names`: thread name with every run of digits as one '#', so that worker-17 and worker-18 are one name. */
struct name_key {
	u32 registration;
	char name[TASK_COMM_LEN];
};

struct name_value {
	struct task_sums sums;
	u64 pass;
	u32 threads; /* in that pass */
	u32 padding;
};

struct process_value {
	u64 pass;		   /* last pass that saw it */
	u64 start_boottime;	   /* of its first thread: with the tgid its identity */
	u64 begin, previous_begin; /* when that pass and the one before began; CLOCK_BOOTTIME, 0 for none */
	struct task_sums total;
	u64 reaped[REAPED_FIELDS];
	u32 states[THREAD_STATES]; /* threads in that pass */
	u32 names;
	u32 untracked; /* threads in that pass without storage: in no name, and without run delay and timeslices */
	u32 unnamed;   /* threads in that pass for whose name there was no place */
	u32 padding;
};

struct node_value {
	u64 pass;
	u64 begin; /* CLOCK_BOOTTIME */
	struct task_sums other;
	u32 other_states[THREAD_STATES];
	u32 other_untracked; /* threads of no target without storage: left out of `other` */
	u32 other_tracked;
	u32 target_tracked;
	u32 reader_tgid; /* of the reading process, in the first pid namespace */
};

#endif
