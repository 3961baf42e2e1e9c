// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sums over all threads of the node in one read of a task iterator: per target process, per target process and thread
 * name, and one sum for the rest of the node. tasks.h says what the sums mean; Python fetches them from the maps.
 *
 * Needs BTF, the task iterator (5.8), task storage for tracing programs (5.12), and CAP_BPF with CAP_PERFMON.
 */
#include "common.bpf.h"
#include "tasks.h"
#include "tasks_read.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* tgid -> registration number; written by Python. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_TARGETS);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/* By registration number. Made here at the first sight of a target, deleted by Python when it is none any more. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_TARGETS);
	__type(key, u32);
	__type(value, struct process_value);
} processes SEC(".maps");

/* Deleted by Python with their process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_NAMES);
	__type(key, struct name_key);
	__type(value, struct name_value);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct node_value);
} node SEC(".maps");

/* What a thread had at the last pass that saw it. */
struct thread_value {
	u32 registration; /* of its process as a target, 0 for none */
	u32 padding;
	struct task_sums last;
	u64 comm[TASK_COMM_LEN / sizeof(u64)];
	char name[TASK_COMM_LEN]; /* made from comm, again only when that changed */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* the kernel demands it for this type */
	__type(key, int);
	__type(value, struct thread_value);
} threads SEC(".maps");

/* Initial values; too large for the stack of 512 bytes together with the rest. */
static struct process_value empty_process;
static struct name_value empty_name;

/*
 * Return the process's sums, begun anew when this is the first of its threads in this pass, or NULL when it is not the
 * target that was registered: its tgid was given to another process, or there is no place.
 *
 * The dead threads' share is read before any living thread: one that dies in between is missed in this pass (Python
 * keeps the totals from falling) and counted in the next one; the other way round it would be counted twice.
 */
static __always_inline struct process_value *process_of(struct task_struct *task, u32 *registration,
							struct node_value *all)
{
	struct process_value *process = bpf_map_lookup_elem(&processes, registration);
	u64 start = task->group_leader->start_boottime;

	if (!process) {
		bpf_map_update_elem(&processes, registration, &empty_process, BPF_NOEXIST);
		process = bpf_map_lookup_elem(&processes, registration);
		if (!process)
			return NULL;
		process->start_boottime = start;
	}
	if (process->start_boottime != start)
		return NULL;
	if (process->pass != all->pass) {
		process->pass = all->pass;
		process->previous_begin = process->begin;
		process->begin = all->begin;
		read_dead_threads(task, &process->total);
		read_reaped(task, process->reaped);
		__builtin_memset(process->states, 0, sizeof(process->states));
		process->untracked = 0;
		process->unnamed = 0;
	}
	return process;
}

static __always_inline void begin_pass(struct node_value *all, u64 pass)
{
	all->pass = pass;
	all->begin = bpf_ktime_get_boot_ns();
	__builtin_memset(all->other_states, 0, sizeof(all->other_states));
	all->other_untracked = 0;
	all->other_tracked = 0;
	all->target_tracked = 0;
	all->reader_tgid = bpf_get_current_pid_tgid() >> 32;
}

/* Write a thread's name with every run of digits as one '#'. */
static __always_inline void name_thread(struct task_struct *task, struct thread_value *thread)
{
	u64 words[TASK_COMM_LEN / sizeof(u64)] = {};
	char *comm = (char *)words;
	u32 length = 0, in_number = 0;

	bpf_probe_read_kernel(words, sizeof(words), task->comm);
	if (words[0] == thread->comm[0] && words[1] == thread->comm[1])
		return;
	thread->comm[0] = words[0];
	thread->comm[1] = words[1];
	__builtin_memset(thread->name, 0, sizeof(thread->name));
	for (int i = 0; i < TASK_COMM_LEN - 1 && comm[i]; i++) {
		u32 digit = comm[i] >= '0' && comm[i] <= '9';

		if (digit && in_number)
			continue;
		in_number = digit;
		thread->name[length++ & (TASK_COMM_LEN - 1)] = digit ? '#' : comm[i];
	}
}

static __always_inline struct name_value *name_of(struct thread_value *thread, struct process_value *process)
{
	struct name_key key = {.registration = thread->registration};
	struct name_value *name;

	__builtin_memcpy(key.name, thread->name, sizeof(key.name));
	name = bpf_map_lookup_elem(&names, &key);
	if (name || process->names >= MAX_NAMES_PER_PROCESS)
		return name;
	if (bpf_map_update_elem(&names, &key, &empty_name, BPF_NOEXIST))
		return NULL;
	process->names++;
	return bpf_map_lookup_elem(&names, &key);
}

/* Put the increases since the last pass into `increase` and remember the new values. */
static __always_inline void advance(struct task_sums *last, const struct task_sums *now, struct task_sums *increase)
{
	for (int i = 0; i < TASK_FIELDS; i++) {
		increase->value[i] = now->value[i] > last->value[i] ? now->value[i] - last->value[i] : 0;
		last->value[i] = now->value[i];
	}
}

static __always_inline void add(struct task_sums *sums, const struct task_sums *increase)
{
	for (int i = 0; i < TASK_FIELDS; i++)
		sums->value[i] += increase->value[i];
}

static __always_inline struct thread_value *thread_of(struct task_struct *task, u32 *tracked, u32 limit)
{
	u64 flags = *tracked < limit ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0;
	struct thread_value *thread = bpf_task_storage_get(&threads, task, 0, flags);

	if (thread)
		(*tracked)++;
	return thread;
}

/*
 * A thread of a new target, and a new thread, begin with their whole past. One that was there during the last pass and
 * was over the limit then does not: its past is in the process's total already, in no name.
 */
static __always_inline void begin_thread(struct task_struct *task, struct thread_value *thread,
					 struct process_value *process, struct task_sums *now, u32 registration)
{
	thread->registration = registration;
	if (task->start_boottime < process->previous_begin)
		thread->last = *now;
	else
		__builtin_memset(&thread->last, 0, sizeof(thread->last));
}

static __always_inline void count_target(struct task_struct *task, struct process_value *process,
					 struct node_value *all, u32 registration)
{
	struct thread_value *thread = thread_of(task, &all->target_tracked, MAX_TARGET_THREADS);
	struct task_sums now, increase;
	struct name_value *name;

	read_thread(task, &now);
	process->states[state_of(task)]++;
	for (int i = 0; i < TASK_FIELDS; i++)
		if (i != RUN_DELAY && i != PCOUNT)
			process->total.value[i] += now.value[i];
	if (!thread) {
		process->untracked++;
		return;
	}
	if (thread->registration != registration)
		begin_thread(task, thread, process, &now, registration);
	name_thread(task, thread);
	name = name_of(thread, process);
	advance(&thread->last, &now, &increase);
	process->total.value[RUN_DELAY] += increase.value[RUN_DELAY];
	process->total.value[PCOUNT] += increase.value[PCOUNT];
	if (!name) {
		process->unnamed++;
		return;
	}
	add(&name->sums, &increase);
	if (name->pass != all->pass) {
		name->pass = all->pass;
		name->threads = 0;
	}
	name->threads++;
}

static __always_inline void count_other(struct task_struct *task, struct node_value *all)
{
	struct thread_value *thread = thread_of(task, &all->other_tracked, MAX_OTHER_THREADS);
	struct task_sums now, increase;

	all->other_states[state_of(task)]++;
	if (!thread) {
		all->other_untracked++;
		return;
	}
	/* Most threads sleep, and nothing grows without CPU time. One just put on a CPU is counted next time. */
	if (!thread->registration && thread->last.value[RUNTIME] == task->se.sum_exec_runtime)
		return;
	thread->registration = 0; /* `last` stays: what it did as a target's thread is not `other`'s */
	read_thread(task, &now);
	advance(&thread->last, &now, &increase);
	add(&all->other, &increase);
}

SEC("iter/task")
int sum_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct process_value *process = NULL;
	struct node_value *all;
	u32 zero = 0, tgid, *registration;
	u64 pass = ctx->meta->session_id;

	all = bpf_map_lookup_elem(&node, &zero);
	if (!all || !task) /* no task: the call that ends a pass */
		return 0;
	if (all->pass != pass)
		begin_pass(all, pass);
	tgid = task->tgid;
	registration = bpf_map_lookup_elem(&targets, &tgid);
	if (registration)
		process = process_of(task, registration, all);
	if (process)
		count_target(task, process, all, *registration);
	else
		count_other(task, all);
	return 0;
}
