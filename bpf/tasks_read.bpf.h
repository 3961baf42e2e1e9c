/* SPDX-License-Identifier: GPL-2.0-only */
/* What tasks.bpf.c reads of the kernel's structures of a task and its process, into the fields of tasks.h. */
#ifndef INFERWATCH_TASKS_READ_BPF_H
#define INFERWATCH_TASKS_READ_BPF_H

#include "common.bpf.h"
#include "tasks.h"

/* Return the class of get_task_state() in fs/proc/array.c, whose letters come from include/linux/sched.h. */
static __always_inline u32 state_of(struct task_struct *task)
{
	u32 state;

	if (bpf_core_field_exists(task->__state))
		state = task->__state;
	else
		state = ((struct task_struct___before_5_14 *)task)->state;
	if (task->exit_state & 0x30) /* EXIT_DEAD, EXIT_ZOMBIE */
		return ZOMBIE;
	if (state & 0x9000) /* TASK_RTLOCK_WAIT, TASK_FROZEN: shown as D */
		return DISK_SLEEP;
	if ((state & 0x402) == 0x402) /* TASK_IDLE: TASK_UNINTERRUPTIBLE that is no load */
		return OTHER;
	state &= 0x7f; /* TASK_REPORT */
	if (!state)
		return RUNNING;
	if (state & 0x70) /* parked; dead ones were seen above */
		return OTHER;
	if (state & 0x0c) /* __TASK_STOPPED, __TASK_TRACED */
		return STOPPED;
	return state & 0x02 ? DISK_SLEEP : SLEEPING;
}

static __always_inline void read_thread(struct task_struct *task, struct task_sums *now)
{
	now->value[RUNTIME] = task->se.sum_exec_runtime;
	now->value[UTIME] = task->utime;
	now->value[STIME] = task->stime;
	now->value[RUN_DELAY] = 0;
	now->value[PCOUNT] = 0;
	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		now->value[RUN_DELAY] = task->sched_info.run_delay;
		now->value[PCOUNT] = task->sched_info.pcount;
	}
	now->value[NVCSW] = task->nvcsw;
	now->value[NIVCSW] = task->nivcsw;
	now->value[MIN_FLT] = task->min_flt;
	now->value[MAJ_FLT] = task->maj_flt;
}

/* Begin a total with what signal_struct keeps; run delay and timeslices go on from where they are. */
static __always_inline void read_dead_threads(struct task_struct *task, struct task_sums *total)
{
	struct signal_struct *dead = task->signal;

	total->value[RUNTIME] = dead->sum_sched_runtime;
	total->value[UTIME] = dead->utime;
	total->value[STIME] = dead->stime;
	total->value[NVCSW] = dead->nvcsw;
	total->value[NIVCSW] = dead->nivcsw;
	total->value[MIN_FLT] = dead->min_flt;
	total->value[MAJ_FLT] = dead->maj_flt;
}

static __always_inline void read_reaped(struct task_struct *task, u64 *reaped)
{
	struct signal_struct *signal = task->signal;

	reaped[REAPED_UTIME] = signal->cutime;
	reaped[REAPED_STIME] = signal->cstime;
	reaped[REAPED_NVCSW] = signal->cnvcsw;
	reaped[REAPED_NIVCSW] = signal->cnivcsw;
	reaped[REAPED_MIN_FLT] = signal->cmin_flt;
	reaped[REAPED_MAJ_FLT] = signal->cmaj_flt;
}

#endif
