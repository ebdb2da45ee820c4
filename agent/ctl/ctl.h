/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl: one file per verb; main.c holds the table. A verb gets "oomctl VERB" as argv[0] and
 * returns the exit status: 0 done, 1 "no" (what that means is the verb's), 2 usage or input. */
#ifndef AGENT_CTL_CTL_H
#define AGENT_CTL_CTL_H

struct ctl_verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* one line for `oomctl --help` */
};

/* Verbs with sub-verbs (`oomctl signatures list`) dispatch with the same table type; the table ends
 * with a NULL name. `program` is "oomctl signatures". Prints help and suggests near names. */
int ctl_dispatch(const char *program, const struct ctl_verb *verbs, int argc, char **argv);

/* The same for those who run the verb by themselves: NULL after help or an error was printed, with
 * the exit status in *status. */
const struct ctl_verb *ctl_choose(const char *program, const struct ctl_verb *verbs, int argc,
                                  char **argv, int *status);

enum { CTL_TIMEOUT_MS = 10000 }; /* for an answer of the head */

int ctl_diagnose(int argc, char **argv);
int ctl_signatures(int argc, char **argv);
int ctl_policy(int argc, char **argv);
int ctl_rewrite(int argc, char **argv);
int ctl_history(int argc, char **argv);
int ctl_show(int argc, char **argv);
int ctl_explain(int argc, char **argv);
int ctl_plan(int argc, char **argv);
int ctl_stop(int argc, char **argv);
int ctl_hold(int argc, char **argv);
int ctl_resume(int argc, char **argv);
int ctl_budget(int argc, char **argv);
int ctl_settle(int argc, char **argv);
int ctl_stats(int argc, char **argv);
int ctl_report(int argc, char **argv);
int ctl_doctor(int argc, char **argv);
int ctl_ray(int argc, char **argv);
int ctl_ray_list(int argc, char **argv);

#endif
