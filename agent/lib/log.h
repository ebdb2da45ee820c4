/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's log: one line per event on standard error (systemd's journal takes it from there),
 * "oomagent: level: job 123: what". Control characters of user data are replaced. */
#ifndef AGENT_LIB_LOG_H
#define AGENT_LIB_LOG_H

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_DEBUGGING };

void log_set_level(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
