#pragma once

#include <random>
#include <string>

namespace pleat::test {

/// JSON texts, some of them none, that a server should survive as a value of any field.
std::string hostile_value(std::mt19937& random);
std::string hostile_grammar(std::mt19937& random);
std::string hostile_schema(std::mt19937& random);
/// Of messages in a conversation, and of variables for its template.
std::string hostile_messages(std::mt19937& random);
std::string hostile_template_arguments(std::mt19937& random);
std::string hostile_tools(std::mt19937& random);

size_t below(std::mt19937& random, size_t n);
bool chance(std::mt19937& random, double p);
/// Flips, cuts, doubles or inserts bytes.
void damage(std::mt19937& random, std::string& text);

}  // namespace pleat::test
