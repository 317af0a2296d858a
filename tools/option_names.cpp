// option_names.cpp - see option_names.hpp.
#include "option_names.hpp"

#include <string_view>
#include <utility>

namespace lockstep::tool {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// The first word of an error, and the option or array that the field was filled from.
constexpr std::pair<std::string_view, std::string_view> fields[] = {
    {"coefficients", "--coefficients"},
    {"coefficient_count", "--coefficients: their number"},
    {"radius", "--radius"},
    {"form", "--form"},
    {"boundary", "--boundary"},
    {"value", "--value"},
    {"boundary_value", "--value"},
    {"sweeps", "--sweeps"},
    {"rank", "--rank"},
    {"width", "--width"},
    {"operand", "--operand"},
    {"kind", "--kind"},
    {"reduction", "--reduction"},
    {"exclusive", "--exclusive"},
    {"result", "--result"},
    {"eps", "--eps"},
    {"scale", "--scale"},
    {"labels", "--labels"},
    {"correction", "--correction"},
    {"offsets", "--offsets"},
    {"axes", "--axes"},
    {"perm", "--axes"},
    {"axis_count", "--axes: their number"},
    {"other", "--other"},
    {"weight", "--weight"},
    {"weight_dtype", "--weight: its type"},
    {"bias", "--bias"},
    {"residual", "--residual"},
    {"gradient", "--gradient"},
    {"weight_gradient", "--weight-gradient"},
    {"bias_gradient", "--bias-gradient"},
    {"dtype", "the array's type"},
    {"element_bytes", "the array's bytes an element"},
    {"shape", "the array's shape"},
    {"count", "the array's length"},
};

}  // namespace

std::string place_in_options(std::string text) {
  replace_all(text, "options.cpu_isa: cpu: cpu_isa", "--isa");
  replace_all(text, "options.cpu_isa", "--isa");
  for (const char* name : {"backend", "variant", "threads"})
    replace_all(text, std::string("options.") + name, std::string("--") + name);
  return text;
}

std::string call_in_options(std::string text) {
  text = place_in_options(std::move(text));
  const size_t end = text.find_first_of(" [:");
  for (const auto& [field, option] : fields)
    if (end != std::string::npos && std::string_view(text).substr(0, end) == field) {
      text.replace(0, end, option);
      break;
    }
  // The default is always right.
  if (const size_t at = text.find("; set result to LOCKSTEP_"); at != std::string::npos)
    text.replace(at, std::string::npos, "; leave --result out");
  return text;
}

}  // namespace lockstep::tool
